import { type FieldType, validateFieldType } from 'n8n-workflow';

import { ItemError } from '../shared/itemError';
import { describe } from '../shared/parameters';

/** The types of n8n's fields, as the messages name them. */
const TYPES: Record<string, string> = {
	string: 'a text',
	number: 'a number',
	boolean: 'true or false',
	array: 'a list',
	object: 'an object',
};

/** The value of a field, converted to its type. @throws ItemError if it is not of that type */
export function typed(name: string, type: unknown, value: unknown, wayOut: string): unknown {
	if (value === null || type === undefined) return value;
	const converted = convert(name, String(type), value);
	if (converted !== undefined) return converted;
	const noun = TYPES[String(type)] ?? String(type);
	throw new ItemError(`The field '${name}' is ${describe(value)} and not ${noun}`, {
		description: wayOut,
	});
}

/** Converts as n8n's own Edit Fields does, but never turns a list or an object into text. */
function convert(name: string, type: string, value: unknown): unknown {
	const isOne = typeof value !== 'object' && !Number.isNaN(value);
	if (type === 'string') return isOne ? String(value) : undefined;
	const isText = typeof value === 'string';
	// n8n takes an empty list for false.
	if ((type === 'boolean' && !isOne) || (isText && value.trim() === '')) return undefined;
	if (type === 'number') {
		const number = isText ? Number(value) : value;
		return Number.isFinite(number) ? number : undefined;
	}
	const result = validateFieldType(name, value, type as FieldType);
	return result.valid ? result.newValue : undefined;
}
