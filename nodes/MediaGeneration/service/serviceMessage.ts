import { isRecord, plainFields } from '../shared/json';

/** Where a failed task's record says why, as `plainFields` writes names. The specification does not show it. */
export const REASON_FIELDS = [
	'message',
	'error',
	'errormessage',
	'detail',
	'reason',
	'failurereason',
];

/** Where other answers say more. What the user sent, and a record repeats, may have such fields, too. */
const FURTHER_FIELDS = ['details', 'description', 'title', 'errors', 'data'];

const MAX_DEPTH = 4;
const MAX_LENGTH = 500;

/**
 * Finds the message that a service put into an answer whose shape is not known.
 *
 * @param body a parsed JSON body
 * @param fields where it is looked for in an object, as `plainFields` writes names
 * @returns one line of at most 500 characters, or undefined where there is none
 */
export function findServiceMessage(
	body: unknown,
	fields = [...REASON_FIELDS, ...FURTHER_FIELDS],
	depth = 0,
): string | undefined {
	if (typeof body === 'string') {
		return body.replace(/\s+/g, ' ').trim().slice(0, MAX_LENGTH) || undefined;
	}
	if (depth >= MAX_DEPTH) return undefined;
	const named = isRecord(body) ? plainFields(body) : undefined;
	const places = named ? fields.map((field) => named.get(field)) : Array.isArray(body) ? body : [];
	for (const place of places) {
		const message = findServiceMessage(place, undefined, depth + 1);
		if (message !== undefined) return message;
	}
	return undefined;
}
