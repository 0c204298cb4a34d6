import type { IDataObject, IExecuteFunctions } from 'n8n-workflow';

import { isRecord, toNumber } from './json';
import { ItemError } from './itemError';

/**
 * Reads the parameters of one item and refuses what cannot be meant, before anything is paid for. Every message
 * names the parameter by its label.
 */
export class ItemParameters {
	private readonly options: IDataObject;

	constructor(
		private readonly context: IExecuteFunctions,
		readonly itemIndex: number,
	) {
		const options = context.getNodeParameter('options', itemIndex, {});
		this.options = isRecord(options) ? options : {};
	}

	value(name: string): unknown {
		return this.context.getNodeParameter(name, this.itemIndex, '');
	}

	option(name: string): unknown {
		return this.options[name];
	}

	isBlank(name: string): boolean {
		return isEmpty(this.value(name));
	}

	/** @throws ItemError where the text is empty or no text at all, a number included that is none */
	requiredText(name: string, label: string, wayOut: string): string {
		const text = this.single(this.value(name), label);
		if (isEmpty(text)) throw this.empty(label, wayOut);
		if (typeof text !== 'string' && !Number.isFinite(text)) {
			throw new ItemError(`The parameter '${label}' is not a text but ${describe(text)}`, {
				description: wayOut,
			});
		}
		return String(text);
	}

	/** Why a parameter without a value has none, and what to do. */
	empty(label: string, wayOut: string): ItemError {
		return (
			this.unfinished(label) ??
			new ItemError(`The parameter '${label}' is empty`, { description: wayOut })
		);
	}

	/**
	 * @param label of the parameter that has no value
	 * @returns why, where the incoming item is a task without results; undefined where it is not
	 */
	unfinished(label: string): ItemError | undefined {
		const { taskId, state } = this.context.getInputData()[this.itemIndex]?.json ?? {};
		if (typeof taskId !== 'string' || (state !== 'FAILURE' && state !== 'PENDING'))
			return undefined;
		const isFailed = state === 'FAILURE';
		return new ItemError(
			`The incoming item is task ${taskId}, which ${isFailed ? 'failed' : 'is not finished'} and has no result for '${label}'`,
			{
				description: isFailed
					? 'Put an If node before this one that lets through what has the state SUCCESS, or have the node that created the task put failed items out by its second output, which its settings offer.'
					: "Put Task → Wait before this node, with {{ $json.taskId }} as 'Task ID'.",
			},
		);
	}

	/** The one value: a list of one entry is that entry. */
	private single(value: unknown, label: string): unknown {
		if (!Array.isArray(value)) return value;
		if (value.length <= 1) return this.single(value[0], label);
		throw new ItemError(
			`The parameter '${label}' is a list of ${value.length}, and takes one at a time`,
			{
				description:
					'Put a Split Out node before this one, which makes an item of each entry, or take one entry in the expression, as in {{ $json.resultUrls[0] }}.',
			},
		);
	}

	/** An option that holds a text, with what to use where it is left empty. */
	optionText(name: string, fallback: string): string {
		const value = this.options[name];
		return typeof value === 'string' && value.trim() !== '' ? value.trim() : fallback;
	}

	/** @throws ItemError where the value is no number or out of bounds */
	number(value: unknown, label: string, bounds: NumberBounds): number {
		if (value === undefined || value === null || value === '') return bounds.fallback;
		const { min, max = Number.MAX_SAFE_INTEGER, unit } = bounds;
		const number = toNumber(value);
		if (
			number === null ||
			number < min ||
			number > max ||
			(bounds.whole && !Number.isInteger(number))
		) {
			const kind = bounds.whole ? 'a whole number' : 'a number';
			const range = max === Number.MAX_SAFE_INTEGER ? `of ${min} or more` : `from ${min} to ${max}`;
			throw new ItemError(`The parameter '${label}' is ${describe(value)}`, {
				description: `Enter ${kind} ${range}${unit === undefined ? '' : ` (${unit})`}.`,
			});
		}
		return number;
	}

	/**
	 * An option that limits what may be spent; 0 where there is none.
	 *
	 * @throws ItemError where the value is no number of 0 or more, or an expression gives none: that is no limit
	 */
	limit(name: string, label: string): number {
		const value = this.options[name];
		if (isEmpty(value) && this.isExpression('options', name)) {
			throw new ItemError(`The expression in '${label}' gives nothing`, {
				description:
					'So it would be no limit. Check that what it takes is there, and have it give a number; 0 means no limit.',
			});
		}
		return this.number(value, label, { fallback: 0, min: 0 });
	}

	/** Whether a parameter, or an entry of one that is a collection, was written as an expression. */
	isExpression(name: string, entry?: string): boolean {
		const raw = { rawExpressions: true };
		const written: unknown = this.context.getNodeParameter(name, this.itemIndex, '', raw);
		const value = entry !== undefined && isRecord(written) ? written[entry] : written;
		return typeof value === 'string' && value.startsWith('=');
	}

	/** @throws ItemError where the option is neither true nor false: nobody is to pay for a guess */
	flag(name: string, label: string): boolean {
		const value = this.options[name];
		if (value === true || value === 'true') return true;
		if (isEmpty(value) || value === false || value === 'false') return false;
		throw new ItemError(`The parameter '${label}' is ${describe(value)}`, {
			description: 'Switch it on or off, or have its expression give true or false.',
		});
	}

	/** @throws ItemError where the value is no JSON object */
	jsonObject(value: unknown, label: string): IDataObject {
		let parsed = value;
		if (typeof value === 'string') {
			if (value.trim() === '') return {};
			parsed = parseJson(value);
			if (parsed instanceof SyntaxError) {
				throw new ItemError(`The parameter '${label}' is not valid JSON`, {
					description: `Write an object such as { "seed": 7 }. The parser says: ${parsed.message}`,
				});
			}
		}
		if (parsed === undefined || parsed === null) return {};
		if (!isRecord(parsed)) {
			throw new ItemError(`The parameter '${label}' is ${describe(parsed)} and not a JSON object`, {
				description: 'Write an object such as { "seed": 7 }.',
			});
		}
		return parsed;
	}
}

interface NumberBounds {
	fallback: number;
	min: number;
	max?: number;
	whole?: boolean;
	/** The unit, for the message. */
	unit?: string;
}

function parseJson(text: string): unknown {
	try {
		return JSON.parse(text);
	} catch (error) {
		return error;
	}
}

/** Whether a value is none, or blank. */
function isEmpty(value: unknown): boolean {
	return (
		value === undefined || value === null || (typeof value === 'string' && value.trim() === '')
	);
}

/** A value as it reads in a message. */
export function describe(value: unknown): string {
	if (Array.isArray(value)) return 'a list';
	if (typeof value === 'object' && value !== null) return 'an object';
	return `'${String(value).slice(0, 100)}'`;
}
