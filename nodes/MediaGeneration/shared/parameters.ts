import type { IDataObject, IExecuteFunctions } from 'n8n-workflow';

import { isName, isRecord, toNumber } from './json';
import { ItemError, messageOf } from './itemError';

/** Which numbers a field takes, and how messages name the field. */
export interface NumberBounds {
	label: string;
	/** The value of an empty field, which may be entered, too; 0 if left out. */
	fallback?: number;
	/** The smallest value; 0 if left out. */
	min?: number;
	/** The largest value; no limit if left out. */
	max?: number;
	/** Whether only whole numbers count. */
	whole?: true;
	/** The unit, for the message that refuses a value. */
	unit?: string;
}

/** All numbers that a user may enter. */
export const NUMBERS = {
	durationSeconds: { label: 'Duration', unit: 'seconds; 0 leaves the choice to the model' },
	maxCostUsd: { label: 'Max Cost (USD)', unit: '0 for no limit' },
	maxInFlight: { label: 'Max Tasks at the Same Time', fallback: 10, min: 1, whole: true },
	minimumBalance: { label: 'Minimum Balance', unit: '0 for no check' },
	retryFailed: { label: 'Retry Failed Tasks', max: 5, whole: true },
	suspendAfter: {
		label: 'Sleep After',
		fallback: 5,
		unit: 'minutes; 0 stores the run first',
	},
	timeout: { label: 'Timeout', unit: 'seconds; 0 leaves it to the node' },
} satisfies Record<string, NumberBounds>;

/**
 * The error of a parameter whose value cannot be used.
 *
 * @param what what is wrong, after `The parameter '…' is `
 * @param wayOut what to do
 */
export const refused = (label: string, what: string, wayOut: string) =>
	new ItemError(`The parameter '${label}' is ${what}`, { description: wayOut });

/** What the panel chooses where a workflow that was made elsewhere leaves a parameter out. */
const DEFAULTS: Record<string, string> = { completion: 'wait', imageSource: 'url' };

/** Reads the parameters of an item, and refuses wrong values before anything is paid for. */
export class ItemParameters {
	private readonly options: IDataObject;

	constructor(
		readonly context: IExecuteFunctions,
		readonly itemIndex: number,
	) {
		const options: unknown = context.getNodeParameter('options', itemIndex, {});
		this.options = isRecord(options) ? options : {};
	}

	value(name: string): unknown {
		// A model is chosen from a list or entered. n8n finds its identifier in both.
		const extracts = { extractValue: name === 'model' };
		const fallback = DEFAULTS[name] ?? '';
		return this.context.getNodeParameter(name, this.itemIndex, fallback, extracts);
	}

	has(name: string): boolean {
		return name in this.options;
	}

	option(name: string): unknown {
		return this.options[name];
	}

	/** @throws ItemError if the value is empty or not a text; a number counts as a text, but not NaN */
	requiredText(name: string, label: string, wayOut: string): string {
		const text = this.single(this.value(name), name, label);
		if (isEmpty(text) && /resultUrl/.test(this.expression(name))) throw this.empty(label, wayOut);
		if (isEmpty(text)) throw refused(label, 'empty', wayOut);
		if (typeof text !== 'string' && !Number.isFinite(text)) {
			throw refused(label, `not a text but ${describe(text)}`, wayOut);
		}
		return String(text);
	}

	/** The error of a parameter that the incoming item leaves empty: why it is empty, and what to do. */
	empty(label: string, wayOut: string): ItemError {
		return this.unfinished(label) ?? refused(label, 'empty', wayOut);
	}

	/** @returns the error of a parameter that is empty because the incoming item is a task without results */
	unfinished(label: string): ItemError | undefined {
		const { taskId, state, dryRun } = this.context.getInputData()[this.itemIndex]?.json ?? {};
		if (dryRun === true) {
			return new ItemError(`The incoming item is of a dry run and has no result for '${label}'`, {
				description: "Switch 'Dry Run' off in the node that makes the result.",
			});
		}
		if (typeof taskId !== 'string' || (state !== 'FAILURE' && state !== 'PENDING'))
			return undefined;
		const isFailed = state === 'FAILURE';
		return new ItemError(
			`The incoming item is task ${taskId}, which ${isFailed ? 'failed' : 'is not finished'} and has no result for '${label}'`,
			{
				description: isFailed
					? "Put an If node before this node that lets only items with the state SUCCESS through. Or, in the node that created the task: Settings → On Error → 'Continue (using error output)'."
					: "Put Wait for Task before this node, with {{ $json.taskId }} as 'Task ID'.",
			},
		);
	}

	/** A single value: a list of one entry counts as its entry. */
	private single(value: unknown, name: string, label: string): unknown {
		if (!Array.isArray(value)) return value;
		if (value.length <= 1) return this.single(value[0], name, label);
		const [, list] = /^=\{\{([^{}]+)\}\}$/.exec(this.expression(name)) ?? [];
		const example = list === undefined ? '' : `, e.g. {{ ${list.trim()}[0] }}`;
		throw new ItemError(
			`The parameter '${label}' is a list of ${value.length}, and takes one at a time`,
			{
				description: `Put a Split Out node before this node: it makes an item of each entry. Or take one entry${example}.`,
			},
		);
	}

	/**
	 * @param fallback the value of an empty option
	 * @throws ItemError if the value is not the name of a field
	 */
	optionName(name: string, label: string, fallback: string, example = fallback): string {
		const value = this.option(name);
		const wayOut = `Enter a name such as ${example}.`;
		if (this.isLeftOut(name, label, value, wayOut)) return fallback;
		if (isName(value)) return value.trim();
		throw refused(label, describe(value), wayOut);
	}

	/** @throws ItemError if the value (by default that of the option) is not a number or out of bounds */
	number(name: keyof typeof NUMBERS, value = this.option(name)): number {
		const bounds: NumberBounds = NUMBERS[name];
		const { label, fallback = 0, min = 0, max = Number.MAX_SAFE_INTEGER, whole, unit } = bounds;
		const number = toNumber(value);
		const kind = whole ? 'a whole number' : 'a number';
		const isOpen = bounds.max === undefined && Number(number) <= max;
		const range = isOpen ? `of ${min} or more` : `from ${min} to ${max}`;
		const told = unit === undefined ? '' : ` (${unit})`;
		const wayOut = `Enter ${kind} ${range}${told}.`;
		if (this.isLeftOut(name, label, value, wayOut)) return fallback;
		const isMeant = number !== null && number >= min && number <= max;
		if (number === fallback || (isMeant && (!whole || Number.isInteger(number)))) return number;
		throw refused(label, describe(value), wayOut);
	}

	/** @throws ItemError if the value (by default that of the option) is neither true nor false: nobody is to pay for a guess */
	flag(name: string, label: string, value = this.option(name)): boolean {
		if (value === true || value === 'true') return true;
		if (value === false || value === 'false') return false;
		const wayOut = 'Switch it on or off, or have its expression give true or false.';
		if (this.isLeftOut(name, label, value, wayOut)) return false;
		throw refused(label, describe(value), wayOut);
	}

	/** Whether a value is empty. @throws ItemError if its expression gives nothing: nobody is to pay for a guess */
	isLeftOut(name: string, label: string, value: unknown, wayOut: string): boolean {
		if (!isEmpty(value)) return false;
		if (this.expression(name) === '') return true;
		throw new ItemError(`The expression in '${label}' gives nothing`, {
			description: `Check that the incoming item has the field. ${wayOut}`,
		});
	}

	/** @returns a parameter or an option as it was written, if it is an expression; otherwise an empty text */
	expression(name: string): string {
		const path = this.has(name) ? `options.${name}` : name;
		const raw = { rawExpressions: true };
		const written: unknown = this.context.getNodeParameter(path, this.itemIndex, '', raw);
		// What was chosen from a list, or entered, stands in an object.
		const text: unknown = isRecord(written) && '__rl' in written ? written.value : written;
		return typeof text === 'string' && text.startsWith('=') ? text : '';
	}

	/** @throws ItemError if the value is not a JSON object */
	jsonObject(value: unknown, label: string): IDataObject {
		if (isEmpty(value)) return {};
		let parsed: unknown;
		try {
			// The value of an expression is used as JSON writes it: a date becomes a text.
			const text = typeof value === 'string' ? value : JSON.stringify(value, finite);
			parsed = JSON.parse(text);
		} catch (error) {
			const wayOut = `Write an object such as { "seed": 7 }. For a text with quotes or line breaks, use 'Additional Fields'. The parser says: ${messageOf(error)}`;
			throw refused(label, 'not valid JSON', wayOut);
		}
		if (parsed === null) return {};
		if (isRecord(parsed)) return parsed;
		const what = `${describe(parsed)} and not a JSON object`;
		throw refused(label, what, 'Write an object such as { "seed": 7 }.');
	}
}

/** @throws ItemError if JSON would write null for a number such as NaN */
function finite(name: string, value: unknown): unknown {
	if (typeof value !== 'number' || Number.isFinite(value)) return value;
	throw new ItemError(`The field '${name}' is '${value}' and not a number`, {
		description: 'Enter a number, or remove the field. No task was created.',
	});
}

/** Whether a value counts as not entered. */
export const isEmpty = (value: unknown): boolean =>
	value === undefined || value === null || (typeof value === 'string' && value.trim() === '');

/** @param choices the values, with their names in the panel. @throws ItemError if a value is none of them */
export function choice<T extends string>(
	label: string,
	value: unknown,
	choices: Record<T, string>,
): T {
	const values = Object.keys(choices) as T[];
	const chosen = values.find((each) => each === value);
	if (chosen !== undefined) return chosen;
	const list = (texts: string[]) => texts.join(', ').replace(/, ([^,]*)$/, ' or $1');
	const names = values.map((each) => `'${choices[each]}'`);
	const wayOut = `Choose ${list(names)}. An expression must give ${list(values)}.`;
	throw refused(label, describe(value), wayOut);
}

/** The texts between separators, trimmed, without empty texts. */
export const textsIn = (text: string, separator: string | RegExp): string[] =>
	text.split(separator).flatMap((part) => part.trim() || []);

/** A value as a message shows it. */
export function describe(value: unknown): string {
	if (Array.isArray(value)) return 'a list';
	if (typeof value === 'object' && value !== null) return 'an object';
	return `'${String(value).slice(0, 100)}'`;
}
