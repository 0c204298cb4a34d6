import { type IDataObject, UserError } from 'n8n-workflow';
import { createHash } from 'crypto';

/** Whether a parsed JSON value is an object (and neither an array nor null). */
export const isRecord = (value: unknown): value is IDataObject =>
	typeof value === 'object' && value !== null && !Array.isArray(value);

/** Whether a parsed JSON value is a text, a number, true or false. */
export const isScalar = (value: unknown): value is string | number | boolean =>
	['string', 'number', 'boolean'].includes(typeof value);

/**
 * Parses a JSON text. A whole number that JavaScript cannot hold becomes a text: it is an id, as a rule, and an id must
 * stay exact. What Python writes for numbers that JSON does not have becomes null.
 *
 * @returns the value, or undefined if the text is not JSON
 */
export function parsedJson(text: string): unknown {
	const exact = /\d{16}/.test(text) ? quoteLargeNumbers(text) : text;
	try {
		return JSON.parse(exact) as unknown;
	} catch {
		if (!/NaN|Infinity/.test(text)) return undefined;
	}
	try {
		return JSON.parse(exact.replace(TOKENS, (token) => NO_NUMBER[token] ?? token)) as unknown;
	} catch {
		return undefined;
	}
}

/** The texts and the numbers of a JSON text. */
const TOKENS = /"[^"\\]*(?:\\.[^"\\]*)*"?|-?\d+(?:\.\d+)?(?:e[-+]?\d+)?|\bNaN\b|-?\bInfinity\b/gis;

const NO_NUMBER: Record<string, string> = { NaN: 'null', Infinity: 'null', '-Infinity': 'null' };

const quoteLargeNumbers = (text: string): string =>
	text.replace(TOKENS, (token) =>
		/^-?\d{16,}$/.test(token) && !Number.isSafeInteger(Number(token)) ? `"${token}"` : token,
	);

/** The number of a JSON value: a finite number, or a string that holds one; null otherwise. */
export function toNumber(value: unknown): number | null {
	if (typeof value === 'number') return Number.isFinite(value) ? value : null;
	if (typeof value !== 'string' || !/^\s*[-+]?\d+(\.\d+)?\s*$/.test(value)) return null;
	return Number(value);
}

/** @returns the fields by their names in lower-case letters only: `credit_balance` and `creditBalance` are the same */
export function plainFields(object: IDataObject): Map<string, unknown> {
	return new Map(Object.entries(object).map(([name, value]) => [plainName(name), value]));
}

/** The fields of an answer that may hold what it says of an error, as `plainFields` writes them. */
const AROUND_ERROR = ['error', 'errors', 'detail', 'details', 'data'];

/** The fields of an answer, and of what it says of an error inside, as `plainFields` writes them; the outermost first. */
export function* errorLayers(body: unknown, depth = 0): Generator<Map<string, unknown>> {
	if (depth > 3) return;
	if (Array.isArray(body)) for (const entry of body) yield* errorLayers(entry, depth + 1);
	if (!isRecord(body)) return;
	const fields = plainFields(body);
	yield fields;
	for (const name of AROUND_ERROR) yield* errorLayers(fields.get(name), depth + 1);
}

/** A name in lower-case letters only. */
export const plainName = (name: string): string => name.replace(/[^a-z]/gi, '').toLowerCase();

/** The names in a path such as `a.b[0]`. */
export const namesIn = (path: string): string[] => path.match(/[^.[\]]+/g) ?? [];

/** Whether a value names a field: dots and brackets alone do not. */
export const isName = (value: unknown): value is string =>
	typeof value === 'string' && /[^.[\]\s]/.test(value);

/** @returns the number at a path such as `a.b[0]`, as `toNumber` reads it; null if there is none */
export function numberAt(value: unknown, path: string): number | null {
	const found = namesIn(path).reduce((inner, name) => {
		if (Array.isArray(inner)) return inner[Number(name)] as unknown;
		return isRecord(inner) && Object.hasOwn(inner, name) ? inner[name] : undefined;
	}, value);
	return toNumber(found);
}

/**
 * A copy of the fields that are kept. `delete` would leave an object that takes five times the memory, and there may be
 * thousands of rows.
 */
export const keep = <T extends object>(
	object: T,
	isKept: (name: string, value: unknown) => boolean,
): T =>
	Object.fromEntries(Object.entries(object).filter(([name, value]) => isKept(name, value))) as T;

/** @returns a copy of an object without some fields; an empty object for an item that has no `json` */
export const without = <T extends object>(object: T | undefined, ...fields: readonly string[]): T =>
	keep(object ?? ({} as T), (name) => !fields.includes(name));

/** Whether two JSON values say the same. The order of the fields of an object says nothing. */
export function isSame(one: unknown, other: unknown): boolean {
	if (typeof one !== 'object' || typeof other !== 'object' || !one || !other) return one === other;
	const entries = Object.entries(one);
	return (
		Array.isArray(one) === Array.isArray(other) &&
		entries.length === Object.keys(other).length &&
		entries.every(([name, value]) => name in other && isSame(value, (other as IDataObject)[name]))
	);
}

/** A short name for a JSON value: 32 hex digits of SHA-256. Values with the same JSON text have the same name. */
export const digest = (value: unknown): string =>
	createHash('sha256').update(JSON.stringify(value)).digest('hex').slice(0, 32);

/**
 * Reads data that n8n stored. A paid task depends on the data, so data of another version are refused, and never
 * guessed.
 *
 * @param stored an object with its `version`
 * @returns the same object
 * @throws UserError if another version of this package wrote the data; the error names the tasks in them
 * @see docs/development.md, What is stored
 */
export function readStored<T>(stored: unknown, version: number): T {
	if (isRecord(stored) && stored.version === version) return stored as T;
	const text = JSON.stringify(stored) ?? '';
	const ids = new Set([...text.matchAll(/"taskId":"([^"]+)"/g)].map(([, taskId]) => taskId));
	// The ids belong to the message: an item that leaves does not show the description.
	const tasks = ids.size > 0 ? `. Its tasks: ${[...ids].join(', ')}` : '';
	throw new UserError(`This execution was started with another version of this package${tasks}`, {
		description:
			'Nothing was sent. Update n8n-nodes-media-generation and retry the execution, or fetch its tasks with the operation Wait for Task.',
	});
}

/** Whether a value contains such a text at any depth. */
export const hasText = (value: unknown, isSuch: (text: string) => boolean): boolean =>
	leavesIn(value).some((leaf) => typeof leaf === 'string' && isSuch(leaf));

/** All values at any depth that are neither lists nor objects. An object with `toJSON` counts as one value. */
export const leavesIn = (value: unknown): unknown[] =>
	hasEntries(value) ? Object.values(value).flatMap(leavesIn) : [value];

const hasEntries = (value: unknown): value is object =>
	typeof value === 'object' &&
	value !== null &&
	!('toJSON' in value && typeof value.toJSON === 'function');

/** A copy of a list or an object with each entry replaced. Other values, and objects with `toJSON`, stay as they are. */
export function mapEntries(
	value: unknown,
	replace: (entry: unknown, name?: string) => unknown,
): unknown {
	if (Array.isArray(value)) return value.map((entry) => replace(entry));
	if (!hasEntries(value)) return value;
	return Object.fromEntries(
		Object.entries(value).map(([name, entry]) => [name, replace(entry, name)]),
	);
}
