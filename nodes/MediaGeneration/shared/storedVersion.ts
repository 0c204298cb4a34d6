import { UserError } from 'n8n-workflow';

import { isRecord } from './json';

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
	const tasks = ids.size > 0 ? ` Its tasks: ${[...ids].join(', ')}` : '';
	throw new UserError('This execution was started with another version of this package', {
		description: `Nothing was sent. Update n8n-nodes-media-generation and retry the execution, or fetch its tasks with the operation Task → Wait.${tasks}`,
	});
}
