import { isRecord } from '../shared/json';

/** Where services put their message; the specification does not show the shape (section 7). */
const MESSAGE_FIELDS = [
	'message',
	'error',
	'errorMessage',
	'error_message',
	'detail',
	'details',
	'reason',
	'failureReason',
	'failure_reason',
	'description',
	'title',
	'errors',
	'data',
];

const MAX_DEPTH = 4;
const MAX_LENGTH = 500;

/**
 * Finds the message that a service put into an answer whose shape is not known.
 *
 * @param body a parsed JSON body, or a failed task's record
 * @returns one line of at most 500 characters, or undefined where there is none
 */
export function findServiceMessage(body: unknown, depth = 0): string | undefined {
	if (typeof body === 'string') {
		const line = body.replace(/\s+/g, ' ').trim();
		return line === '' ? undefined : line.slice(0, MAX_LENGTH);
	}
	if (depth >= MAX_DEPTH) return undefined;
	if (Array.isArray(body)) {
		for (const entry of body) {
			const message = findServiceMessage(entry, depth + 1);
			if (message !== undefined) return message;
		}
		return undefined;
	}
	if (!isRecord(body)) return undefined;
	for (const field of MESSAGE_FIELDS) {
		const message = findServiceMessage(body[field], depth + 1);
		if (message !== undefined) return message;
	}
	return undefined;
}
