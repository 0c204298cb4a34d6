import { UserError } from 'n8n-workflow';

import { isRecord } from './json';

/**
 * What a stored value looks like: its type, a list of one shape, or an object with a shape for each field. A field that
 * ends in `?` need not be there, and `*` stands for every field.
 */
export type Shape = string | readonly [Shape] | { readonly [field: string]: Shape };

/**
 * Reads what outlives a process, as an answer of the service is read: what is not as it should be is refused in words,
 * and never guessed, since a task that is paid for hangs on it.
 *
 * @param stored an object with its `version`
 * @param shape all of it but the version
 * @returns the very value
 * @throws UserError where another version of this package wrote it, or nobody can tell what it says
 * @see docs/state.md
 */
export function readStored(stored: unknown, version: number, shape: Shape): unknown {
	if (isRecord(stored) && stored.version === version && isOf(shape, stored)) return stored;
	throw unreadable(stored);
}

/** Says what to do, and names the tasks, whatever else can be read. */
export function unreadable(stored: unknown): UserError {
	const text = JSON.stringify(stored) ?? '';
	const ids = new Set([...text.matchAll(/"taskId":"([^"]+)"/g)].map(([, taskId]) => taskId));
	const tasks = ids.size > 0 ? ` Its tasks: ${[...ids].join(', ')}` : '';
	return new UserError('This execution was started with another version of this package', {
		description: `Nothing was sent. Update n8n-nodes-media-generation and retry the execution, or fetch its tasks with the operation Task → Wait.${tasks}`,
	});
}

function isOf(shape: Shape, value: unknown): boolean {
	if (shape === 'object') return isRecord(value);
	if (typeof shape === 'string') return typeof value === shape;
	if (Array.isArray(shape)) {
		const [each] = shape as readonly [Shape];
		return Array.isArray(value) && value.every((entry) => isOf(each, entry));
	}
	if (!isRecord(value)) return false;
	return Object.entries(shape).every(([field, part]) => {
		if (field === '*') return Object.values(value).every((entry) => isOf(part, entry));
		const name = field.replace('?', '');
		return (value[name] === undefined && name !== field) || isOf(part, value[name]);
	});
}
