import { isRecord, parsedJson, plainFields, toNumber } from '../shared/json';
import { retryAfterMs } from './retryAfter';
import { findServiceMessage } from './serviceMessage';
import { isOfTask } from './taskId';

/** An answer as it came, from whatever speaks HTTP. */
export interface Answer {
	statusCode: number;
	headers: Record<string, unknown>;
	body: string;
}

/** What a request came to. */
export type Kind =
	/** An answer as the service gives it; or any answer with a 2xx and JSON. */
	| 'answered'
	/** The key is refused. It may also be that this item is not allowed (403). */
	| 'unauthorized'
	/** The account has no credits left. */
	| 'noCredits'
	/** There is no such task, or no such address. */
	| 'notFound'
	/** The account has too many unfinished tasks, or asks too often. */
	| 'tooManyRequests'
	/** The request was not accepted as it is. */
	| 'rejected'
	/** The answer points at another address. */
	| 'redirected'
	/** The service, or a gateway before it, does not work at the moment. */
	| 'serviceDown'
	/** There was no connection, so the request certainly did not reach the service. */
	| 'unreachable'
	/** The request left, and no complete answer came back. */
	| 'noAnswer'
	/** The answer is not as the specification says: a page of a gateway, or a body that was cut off. */
	| 'unexpectedAnswer'
	/** The answer is that of the service, and has no task record with a state. */
	| 'unusableRecord';

/** What an answer means for the request. */
export interface Meaning {
	kind: Kind;
	/** `stranger`: something before the service, such as a proxy, a firewall or a login page. */
	speaker: 'service' | 'stranger' | 'nobody';
	/** Whether the service did what a create asked for. Only after `no` a create may be sent again. */
	taken: 'yes' | 'no' | 'unknown';
	/** What the answer is about: this request alone, the base URL, the API key, or the account. */
	scope: 'item' | 'address' | 'key' | 'account';
	/** Whether the answer may concern this request alone, although it usually concerns what `scope` says. */
	mayBeItem: boolean;
	/** Whether the same request may well succeed later: `retryAfterMs` later, if the answer says so. */
	again: boolean;
	/** How long the answer asks to wait, milliseconds. */
	retryAfterMs: number | undefined;
}

/** An answer that was read once. */
interface Classified extends Meaning {
	/** The HTTP status, or the one that the body has instead. */
	status: number;
	/** The words of whoever speaks, in one line. */
	said: string | undefined;
	/** The parsed body; undefined if it is not JSON. */
	spoken: unknown;
}

type Verdict = Pick<Meaning, 'kind' | 'taken' | 'scope' | 'again'>;

const verdict = (
	kind: Kind,
	taken: Meaning['taken'],
	scope: Meaning['scope'],
	again: boolean,
): Verdict => ({ kind, taken, scope, again });

/** What a request means that came to this, if nothing more is known. */
const VERDICTS: Record<Kind, Verdict> = {
	answered: verdict('answered', 'yes', 'item', false),
	unauthorized: verdict('unauthorized', 'no', 'key', false),
	noCredits: verdict('noCredits', 'no', 'account', false),
	notFound: verdict('notFound', 'no', 'address', false),
	tooManyRequests: verdict('tooManyRequests', 'no', 'account', true),
	rejected: verdict('rejected', 'no', 'item', false),
	redirected: verdict('redirected', 'unknown', 'address', false),
	serviceDown: verdict('serviceDown', 'unknown', 'item', true),
	unreachable: verdict('unreachable', 'no', 'address', true),
	noAnswer: verdict('noAnswer', 'unknown', 'item', true),
	unexpectedAnswer: verdict('unexpectedAnswer', 'unknown', 'address', true),
	unusableRecord: verdict('unusableRecord', 'unknown', 'item', true),
};

/** @returns what is known of a request without a look at an answer */
export const meaningOf = (kind: Kind): Meaning => ({
	...VERDICTS[kind],
	speaker: kind === 'unreachable' || kind === 'noAnswer' ? 'nobody' : 'service',
	mayBeItem: false,
	retryAfterMs: undefined,
});

/** These redirects ask for the same request at another address. With 302 and 303 a service may point to a new task. */
const MOVED = [301, 307, 308];

/** A gateway may have handed the request on before it gave one of these answers. */
const HANDED_ON = [408, 425, 499];

const UNAVAILABLE = 503;

/** Whether a trigger of this package has taken a callback. */
export const isOk = ({ statusCode }: Pick<Answer, 'statusCode'>): boolean => statusCode === 200;

function byStatus(statusCode: number): Verdict {
	if (statusCode < 200) return VERDICTS.unexpectedAnswer;
	if (statusCode < 300) return VERDICTS.answered;
	if (statusCode < 400) {
		return { ...VERDICTS.redirected, taken: MOVED.includes(statusCode) ? 'no' : 'unknown' };
	}
	if (statusCode >= 500 || HANDED_ON.includes(statusCode)) return VERDICTS.serviceDown;
	switch (statusCode) {
		case 401:
		case 403:
			return VERDICTS.unauthorized;
		case 402:
			return VERDICTS.noCredits;
		case 404:
		case 410:
			return VERDICTS.notFound;
		case 405:
			return { ...VERDICTS.rejected, scope: 'address' };
		case 429:
			return VERDICTS.tooManyRequests;
		default:
			return VERDICTS.rejected;
	}
}

/** The statuses with which services say a word in plain text about this one request. */
const WORD_STATUSES = [400, 404, 410, 422];
const LONGEST_WORD = 200;

/** Whether a body that is no JSON is a word of the service itself, such as `Not Found`, and no page of a stranger. */
const isWord = (status: number, body: string): boolean =>
	WORD_STATUSES.includes(status) && body.trim().length <= LONGEST_WORD && !body.includes('<');

/**
 * Says what an answer means. The specification does not show error answers (section 7), so the statuses have their
 * meanings in HTTP. This is the only place that knows a status: creates, reads, downloads and callbacks ask here.
 *
 * Money comes first: what something other than the service answers about its own trouble (5xx, 408, 425, 499) says
 * nothing of the task, even with `Retry-After`. Such a page covers posts that the service took and answered late.
 *
 * @param answer with the secrets removed from its body
 * @param now milliseconds since 1970, for dates in headers
 * @see docs/service.md, the table of answers
 */
export function classifyAnswer(answer: Answer, now: number): Classified {
	const { headers, body } = answer;
	const spoken = parsedJson(body);
	const status = statusOf(answer.statusCode, spoken);
	const isPage = spoken === undefined && body.trim() !== '' && !isWord(status, body);
	const isRefusal = status >= 400;
	const said = findServiceMessage(spoken ?? (/^\s*</.test(body) ? undefined : body));
	const basis = byStatus(status);
	const isOfLimit = basis.kind === 'tooManyRequests';
	const found: Classified = {
		...basis,
		status,
		speaker: isPage && basis.kind !== 'redirected' ? 'stranger' : 'service',
		mayBeItem: status === 403 || (status === 404 && /\bmodel/i.test(said ?? '')),
		retryAfterMs: isRefusal ? retryAfterMs(headers, now, spoken, isOfLimit) : undefined,
		said,
		spoken,
	};
	if (isAccountEmpty(found)) return { ...found, ...VERDICTS.noCredits, mayBeItem: false };
	if (found.speaker === 'stranger') return ofStranger(found);
	const asksToWait = status === UNAVAILABLE && found.retryAfterMs !== undefined;
	return asksToWait ? { ...found, taken: 'no', scope: 'account' } : found;
}

/** A page cannot mean the account or a task, and a firewall may have something against this request alone. */
function ofStranger(found: Classified): Classified {
	if (found.kind === 'answered') return { ...found, ...VERDICTS.unexpectedAnswer };
	const { kind, scope } = found;
	return {
		...found,
		mayBeItem: kind !== 'notFound',
		scope: kind === 'rejected' ? 'address' : scope,
	};
}

/** The names under which an answer with status 200 has the status that it means. */
const STATUS_FIELDS = ['code', 'statuscode', 'status'];

/** Many services answer everything with 200, and put the true status into the body. A task is none the less a task. */
function statusOf(statusCode: number, spoken: unknown): number {
	if (statusCode < 200 || statusCode >= 300 || !isRecord(spoken) || isOfTask(spoken)) {
		return statusCode;
	}
	const fields = plainFields(spoken);
	const code = STATUS_FIELDS.map((name) => toNumber(fields.get(name))).find(
		(each) => each !== null,
	);
	// A 500 in the body says that the service has nothing to say yet.
	return code && code >= 400 && code < 500 ? code : statusCode;
}

/** The fields that name an error in one word, as `plainFields` writes them, and those that may hold such a field. */
const LABELS = ['code', 'type', 'errorcode', 'errortype', 'reason', 'status'];
const AROUND = ['error', 'errors', 'detail', 'details', 'data'];

function labelsIn(body: unknown, depth = 0): string[] {
	if (Array.isArray(body)) return body.flatMap((entry) => labelsIn(entry, depth + 1));
	if (!isRecord(body) || depth > 3) return [];
	return [...plainFields(body)].flatMap(([name, value]) => {
		if (LABELS.includes(name) && typeof value === 'string') return [value];
		return AROUND.includes(name) ? labelsIn(value, depth + 1) : [];
	});
}

const MONEY = /credit|balance|billing|payment|insufficient.?funds/i;
const QUOTA = /quota/i;
const LACKS_MONEY = /insufficient.?(credit|balance|quota|fund)/i;

/** The words for a limit that time lifts. */
const SHORT_LIMIT = /rate.?limit|per.?(second|minute)|try again in|concurren|throttl/i;

/** Whether the account has no credits: services say so with 402, and also with 429, 403 or 400. */
function isAccountEmpty({ kind, spoken, said, retryAfterMs }: Classified): boolean {
	const labels = labelsIn(spoken);
	if (kind === 'rejected') return labels.some((each) => LACKS_MONEY.test(each));
	if (kind !== 'tooManyRequests' && kind !== 'unauthorized') return false;
	if (labels.some((each) => LACKS_MONEY.test(each))) return true;
	// What stands in quotation marks may be the prompt.
	return [...labels, (said ?? '').replace(/"[^"]*"/g, '')].some(
		(each) =>
			!SHORT_LIMIT.test(each) &&
			(MONEY.test(each) || (QUOTA.test(each) && retryAfterMs === undefined)),
	);
}
