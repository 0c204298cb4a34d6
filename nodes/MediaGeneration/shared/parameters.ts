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

	/** @throws ItemError where the text is empty or no text at all */
	requiredText(name: string, label: string, wayOut: string): string {
		const value = this.value(name);
		const text = typeof value === 'number' ? String(value) : value;
		if (text === undefined || text === null || text === '') {
			throw new ItemError(`The parameter '${label}' is empty`, { description: wayOut });
		}
		if (typeof text !== 'string') {
			throw new ItemError(`The parameter '${label}' is not a text but ${describe(text)}`, {
				description: wayOut,
			});
		}
		if (text.trim() === '') {
			throw new ItemError(`The parameter '${label}' is empty`, { description: wayOut });
		}
		return text;
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

/** A value as it reads in a message. */
function describe(value: unknown): string {
	if (Array.isArray(value)) return 'a list';
	if (typeof value === 'object' && value !== null) return 'an object';
	return `'${String(value).slice(0, 100)}'`;
}
