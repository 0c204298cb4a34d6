import {
	type IDataObject,
	type INode,
	type INodeExecutionData,
	type JsonObject,
	NodeApiError,
	NodeOperationError,
} from 'n8n-workflow';

interface ItemErrorDetails {
	/** The next step for the user. */
	description?: string | undefined;
	/** The status with which the service answered, where it did. */
	statusCode?: number | undefined;
	/** What is known of the item's task: it goes out with the item under *On Error: Continue*. */
	task?: IDataObject;
}

/** What an error says, whatever was thrown. */
export const messageOf = (error: unknown): string =>
	error instanceof Error ? error.message : String(error);

/** Looks for something along an error's causes, through the wrappers that n8n puts around it. */
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
		link = 'cause' in link ? link.cause : 'errorResponse' in link ? link.errorResponse : undefined;
	}
	return undefined;
}

/** What went wrong with one item: `message` says what happened, `description` what to do. */
export class ItemError extends Error {
	readonly description: string | undefined;
	readonly statusCode: number | undefined;
	readonly task: IDataObject;

	constructor(message: string, { description, statusCode, task = {} }: ItemErrorDetails = {}) {
		super(message);
		this.description = description;
		this.statusCode = statusCode;
		this.task = task;
	}

	/**
	 * @param error whatever was thrown
	 * @param task what is known of the item's task
	 */
	static from(error: unknown, task: IDataObject = {}): ItemError {
		if (error instanceof ItemError) {
			// What the error knows itself comes first, and wins.
			const known = { ...error.task, ...task, ...error.task };
			return new ItemError(error.message, { ...error, task: known });
		}
		const { description, statusCode } = Object(error) as Record<string, unknown>;
		return new ItemError(messageOf(error), {
			...(typeof description === 'string' && { description }),
			...(typeof statusCode === 'number' && { statusCode }),
			task,
		});
	}

	/** The same error, with a reason or a next step before its description. */
	static because(error: Error, why: string): ItemError {
		const { message, description = '', statusCode } = ItemError.from(error);
		return new ItemError(message, { description: `${why} ${description}`.trim(), statusCode });
	}

	/**
	 * The item that goes out in place of a result, for *On Error: Continue*. Its `json` names the task: the id and the
	 * result URLs of a task that was paid for must not be lost. n8n adds the fields of the input item on the error output.
	 */
	toItem(node: INode, pairedItem?: INodeExecutionData['pairedItem']): INodeExecutionData {
		const { message: error, task } = this;
		const paired = pairedItem !== undefined && { pairedItem };
		const isForErrorOutput = node.onError === 'continueErrorOutput';
		if (!isForErrorOutput) return { json: inTableOrder({ ...task, error }), ...paired };
		const isKnown = Object.keys(task).length > 0;
		const item = { json: { error, ...(isKnown && { details: task }) }, ...paired };
		// n8n 2.41 tells by the names `error` and `details` alone what belongs on the error output, and older versions
		// by the item's own `error`, for which they would leave nothing but the message in `json`. Not enumerable it is
		// looked at, but not in the copy that n8n makes of a paired item to add the fields of its input.
		if (pairedItem === undefined) return item;
		return Object.defineProperty(item, 'error', { value: this.toNodeError(node, undefined) });
	}

	/** The same as an error of n8n's, which its editor shows with message, description and item. */
	toNodeError(node: INode, itemIndex: number | undefined, description = this.description): Error {
		const shown = { message: this.message, description, itemIndex };
		if (this.statusCode === undefined) return new NodeOperationError(node, this.message, shown);
		// A bare object and never the original error: that one carries the request and so the API key.
		const response: JsonObject = { message: this.message };
		return new NodeApiError(node, response, { ...shown, httpCode: String(this.statusCode) });
	}
}

/**
 * The fields in the order of n8n's table: what became of the task first, and `record` last, since it is long and would
 * push the others out of sight.
 */
export function inTableOrder(fields: IDataObject): IDataObject {
	const { taskId, state, timedOut, error, record, ...others } = fields;
	const ordered = { taskId, state, timedOut, error, ...others, record };
	return Object.fromEntries(Object.entries(ordered).filter(([, value]) => value !== undefined));
}
