import { type IDataObject, UserError } from 'n8n-workflow';
import { createHash } from 'crypto';

/** Whether a parsed JSON value is an object (and neither an array nor null). */
export const isRecord = (value: unknown): value is IDataObject =>
	typeof value === 'object' && value !== null && !Array.isArray(value);

/** @returns undefined where the text is no JSON */
export function parsedJson(text: string): unknown {
	try {
		return JSON.parse(text) as unknown;
	} catch {
		return undefined;
	}
}

/** The number that a JSON value stands for: a finite number or a string that holds one; null otherwise. */
export function toNumber(value: unknown): number | null {
	if (typeof value === 'number') return Number.isFinite(value) ? value : null;
	if (typeof value !== 'string' || !/^\s*[-+]?\d+(\.\d+)?\s*$/.test(value)) return null;
	return Number(value);
}

/** @returns the fields of an object by their names in small letters alone: `credit_balance` and `creditBalance` are one */
export function plainFields(object: IDataObject): Map<string, unknown> {
	const plain = (name: string) => name.replace(/[^a-z]/gi, '').toLowerCase();
	return new Map(Object.entries(object).map(([name, value]) => [plain(name), value]));
}

/** The names in a path: dots lead into objects, and [0] into lists. */
export const namesIn = (path: string): string[] => path.match(/[^.[\]]+/g) ?? [];

/** @returns what stands in a value behind these names, of which a number picks an entry of a list; undefined where nothing does */
export function valueAt(value: unknown, names: readonly string[]): unknown {
	return names.reduce((found, name) => {
		if (Array.isArray(found)) return found[Number(name)] as unknown;
		return isRecord(found) && Object.hasOwn(found, name) ? found[name] : undefined;
	}, value);
}

/** @returns a copy of an object without one of its fields, which need not be there */
export const without = <T extends object>(object: T, field: string): T =>
	Object.fromEntries(Object.entries(object).filter(([name]) => name !== field)) as T;

/** A short name, 32 hex digits of SHA-256: two JSON values have the same one only if they are written the same. */
export const digest = (value: unknown): string =>
	createHash('sha256').update(JSON.stringify(value)).digest('hex').slice(0, 32);

/**
 * Reads what outlives a process. A task that is paid for hangs on it, so what another version wrote is refused in words,
 * and never guessed.
 *
 * @param stored an object with its `version`
 * @returns the very object
 * @throws UserError where another version of this package wrote it; the error names the tasks in it
 * @see docs/state.md
 */
export function readStored<T>(stored: unknown, version: number): T {
	if (isRecord(stored) && stored.version === version) return stored as T;
	const text = JSON.stringify(stored) ?? '';
	const ids = new Set([...text.matchAll(/"taskId":"([^"]+)"/g)].map(([, taskId]) => taskId));
	// In the message: where the item leaves, nobody sees the description.
	const tasks = ids.size > 0 ? `. Its tasks: ${[...ids].join(', ')}` : '';
	throw new UserError(`This execution was started with another version of this package${tasks}`, {
		description:
			'Nothing was sent. Update n8n-nodes-media-generation and retry the execution, or fetch its tasks with the operation Task → Wait.',
	});
}
