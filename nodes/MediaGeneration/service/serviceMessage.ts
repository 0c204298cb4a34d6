import { isRecord, plainFields } from '../shared/json';

/** The fields of a failed task's record that may hold the reason, most telling first, as `plainFields` writes them. */
export const WHY_FIELDS = [
	'failurereason',
	'failreason',
	'failmsg',
	'failmessage',
	'failuremessage',
	'errormessage',
	'errormsg',
	'error',
	'errors',
	'message',
	'msg',
	'detail',
	'reason',
];

/** The same for other answers. In a task record these fields repeat what the user sent. */
const FURTHER_FIELDS = ['details', 'description', 'title', 'data'];

/** An envelope says this of itself, also around a failure. */
const NOTHING_SAID =
	/^(ok|okay|success(ful|fully)?|succeeded|done|null|none|n\/a|true|false)[.!]?$/i;

const MAX_DEPTH = 4;
const MAX_LENGTH = 500;

/**
 * Finds the message in an answer whose shape is not known.
 *
 * @param fields the fields of an object to look in, as `plainFields` writes them
 * @returns one line of at most 500 characters, or undefined if there is no message
 */
export function findServiceMessage(
	body: unknown,
	fields = [...WHY_FIELDS, ...FURTHER_FIELDS],
	depth = 0,
): string | undefined {
	if (typeof body === 'string') {
		const line = body.replace(/\s+/g, ' ').trim().slice(0, MAX_LENGTH);
		return line === '' || NOTHING_SAID.test(line) ? undefined : line;
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
