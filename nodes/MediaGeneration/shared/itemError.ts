import {
	type FunctionsBase,
	type IDataObject,
	type INode,
	type INodeExecutionData,
	NodeApiError,
	NodeOperationError,
} from 'n8n-workflow';

import { isRecord, keep } from './json';

interface ItemErrorDetails {
	/** The next step for the user. */
	description?: string | undefined;
	/** The HTTP status of the service's answer, if there was one. */
	statusCode?: number | undefined;
	/** The known fields of the item's task, which leave with the item under *On Error: Continue*. */
	task?: IDataObject;
	/** Whether no other item of the run can be ordered either, before somebody has done something. */
	endsBatch?: boolean | undefined;
}

/** The message of an error of any type. */
export const messageOf = (error: unknown): string =>
	error instanceof Error ? error.message : String(error);

/** Looks through an error and its causes: n8n wraps errors. */
export function findInChain<T>(
	error: unknown,
	pick: (link: unknown) => T | undefined,
): T | undefined {
	const seen = new Set<unknown>();
	let link = error;
	while (typeof link === 'object' && link !== null && !seen.has(link)) {
		seen.add(link);
		const found = pick(link);
		if (found !== undefined) return found;
		link = 'cause' in link ? link.cause : undefined;
	}
	return undefined;
}

/**
 * The error of an item: `message` says what happened, `description` says what to do. If the item has a task, whatever leaves
 * the node names the task.
 */
export class ItemError extends Error {
	readonly description: string | undefined;
	readonly statusCode: number | undefined;
	readonly task: IDataObject;
	readonly endsBatch: boolean | undefined;

	constructor(
		message: string,
		{ description, statusCode, task = {}, endsBatch }: ItemErrorDetails = {},
	) {
		super(message);
		this.description = description;
		this.statusCode = statusCode;
		this.task = task;
		this.endsBatch = endsBatch;
	}

	/** What happened, and the id of the task last: the title of an error is short. */
	get told(): string {
		const { taskId } = this.task;
		const named = typeof taskId === 'string' && taskId !== '';
		return named ? `${withoutStop(this.message)} (task ${taskId})` : this.message;
	}

	/** @param task the known fields of the item's task */
	static from(error: unknown, task: IDataObject = {}): ItemError {
		if (error instanceof ItemError) {
			// The error's own fields come first, and win.
			const known = { ...error.task, ...task, ...error.task };
			return new ItemError(error.message, { ...error, task: known });
		}
		const { description, statusCode, endsBatch } = Object(error) as Record<string, unknown>;
		return new ItemError(messageOf(error), {
			...(typeof description === 'string' && { description }),
			...(typeof statusCode === 'number' && { statusCode }),
			...(endsBatch === true && { endsBatch }),
			task,
		});
	}

	/** The same error, with a reason or a next step before its description. */
	static because(error: Error, why: string): ItemError {
		const { message, description = '', statusCode } = ItemError.from(error);
		return new ItemError(message, { description: `${why} ${description}`.trim(), statusCode });
	}

	/**
	 * The output item of a failed item under *On Error: Continue*. Its `json` names the task, which may be paid for, and
	 * says what to do. On the error output n8n adds the fields of the input item.
	 */
	toItem(node: INode, pairedItem?: INodeExecutionData['pairedItem']): INodeExecutionData {
		const { told: error, description: advice } = this;
		const task = { ...this.task, ...(advice && { advice }) };
		const paired = pairedItem !== undefined && { pairedItem };
		const isForErrorOutput = node.onError === 'continueErrorOutput';
		if (!isForErrorOutput) return { json: inTableOrder({ ...task, error }), ...paired };
		const isKnown = Object.keys(task).length > 0;
		// n8n sorts an item to the error output if `json` has only the names `error` and `details`.
		return { json: { error, ...(isKnown && { details: task }) }, ...paired };
	}

	/**
	 * Converts the error to n8n's, which the editor shows with message and description.
	 *
	 * @param itemIndex the item that the message names, counted from one; undefined if there is one item only. n8n itself
	 *   would count from zero.
	 */
	toNodeError(node: INode, itemIndex: number | undefined, description = this.description): Error {
		const { statusCode } = this;
		const number = itemIndex === undefined ? '' : ` (item ${itemIndex + 1})`;
		const message = this.told.replace(number, '') + number;
		const options = { message, description };
		// A new object and never the original error, which contains the request, and so the API key.
		const error =
			statusCode === undefined
				? new NodeOperationError(node, message, options)
				: new NodeApiError(node, { message }, { ...options, httpCode: String(statusCode) });
		// n8n replaces a message in which it finds a code such as ECONNREFUSED: the task id and what happened would be lost.
		return Object.assign(error, { message });
	}
}

/** An error as n8n stores it: plain data, from which `errorOf` makes the error again. */
export type StoredError = ItemErrorDetails & { message: string };

export const storedError = (error: ItemError): StoredError => {
	const { message, description, statusCode, task, endsBatch } = error;
	return { message, description, statusCode, task, endsBatch };
};

/** The error of plain data. */
export const errorOf = (error: StoredError | undefined): ItemError =>
	new ItemError(error?.message ?? 'Nothing is known of this item', error);

/** A text without full stops and spaces at its end. */
export function withoutStop(text: string): string {
	let end = text.length;
	while (/[.\s]/.test(text.charAt(end - 1))) end--;
	return text.slice(0, end);
}

/** The id of the task that an output item names: on the error output `details` holds what is known of the task. */
export const taskIdIn = ({ taskId, details }: IDataObject): unknown =>
	taskId ?? (isRecord(details) ? details.taskId : undefined);

/**
 * The fields in the order of n8n's table: the result first, and `record` last, which is long and would hide the others.
 */
export function inTableOrder(fields: IDataObject): IDataObject {
	const { taskId, state, timedOut, error, advice, record, ...others } = fields;
	const ordered = { taskId, state, timedOut, error, advice, ...others, record };
	return keep(ordered, (_name, value) => value !== undefined);
}

/** A text of at most `most` characters, and an ellipsis if it is cut. */
export const shortened = (text: string, most: number): string =>
	text.length > most ? `${text.slice(0, most)}…` : text;

/** @returns the number with its noun, e.g. `1 task` or `3 tasks` */
export const count = (number: number, noun: string): string =>
	`${number} ${noun}${number === 1 ? '' : 's'}`;

/** What would begin a line of its own, or hide a part of it. */
const CONTROL = /[\p{Cc}\u2028\u2029]/gu;

/**
 * Writes one line into n8n's log, which begins with the name of the node. An id or words of the service make no line of
 * their own: whoever reads the log takes each line for one of n8n.
 */
export function writeLog(context: FunctionsBase, level: 'info' | 'warn', text: string): void {
	const line = `${context.getNode().name}: ${text}`;
	context.logger[level](line.replace(CONTROL, (sign) => encodeURIComponent(sign)));
}
