import {
	errorLayers,
	isRecord,
	parsedJson,
	plainFields,
	plainName,
	toNumber,
} from '../shared/json';
import { findServiceMessage, isOfTask } from './answerFields';
import { type Answer, retryAfterMs } from './boundedAnswer';

/** What a request came to. */
export type Kind =
	/** An answer as the service gives it; or any answer with a 2xx and JSON. */
	| 'answered'
	/** The key is refused (401). */
	| 'unauthorized'
	/** The key, or this one request, is not allowed (403). */
	| 'forbidden'
	| 'noCredits'
	/** There is no such task, or no such address. */
	| 'notFound'
	/** The account has too many unfinished tasks, or asks too often. */
	| 'tooManyRequests'
	| 'rejected'
	/** The body of the request is too large (413). */
	| 'tooLarge'
	/** The answer points at another address. */
	| 'redirected'
	/** The service, or a gateway before it, does not work at the moment. */
	| 'serviceDown'
	/** Nobody was connected, so the request certainly did not reach the service. */
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
	speaker: 'service' | 'stranger';
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
	/** The words of whoever refuses, in one line. Good answers come by the thousand, and nobody asks for their words. */
	said?: string | undefined;
	/** The parsed body; undefined if it is not JSON. */
	spoken: unknown;
}

type Verdict = Pick<Meaning, 'kind' | 'taken' | 'scope' | 'again'>;

/** What a request means that came to this, if nothing more is known. */
const VERDICTS: Record<Kind, Verdict> = {
	answered: { kind: 'answered', taken: 'yes', scope: 'item', again: false },
	unauthorized: { kind: 'unauthorized', taken: 'no', scope: 'key', again: false },
	forbidden: { kind: 'forbidden', taken: 'no', scope: 'key', again: false },
	noCredits: { kind: 'noCredits', taken: 'no', scope: 'account', again: false },
	notFound: { kind: 'notFound', taken: 'no', scope: 'address', again: false },
	tooManyRequests: { kind: 'tooManyRequests', taken: 'no', scope: 'account', again: true },
	rejected: { kind: 'rejected', taken: 'no', scope: 'item', again: false },
	tooLarge: { kind: 'tooLarge', taken: 'no', scope: 'item', again: false },
	redirected: { kind: 'redirected', taken: 'unknown', scope: 'address', again: false },
	serviceDown: { kind: 'serviceDown', taken: 'unknown', scope: 'item', again: true },
	unreachable: { kind: 'unreachable', taken: 'no', scope: 'address', again: true },
	noAnswer: { kind: 'noAnswer', taken: 'unknown', scope: 'item', again: true },
	unexpectedAnswer: { kind: 'unexpectedAnswer', taken: 'unknown', scope: 'address', again: true },
	unusableRecord: { kind: 'unusableRecord', taken: 'unknown', scope: 'item', again: true },
};

/** @returns what is known of a request without a look at an answer */
export const meaningOf = (kind: Kind): Meaning => ({
	...VERDICTS[kind],
	speaker: 'service',
	mayBeItem: false,
	retryAfterMs: undefined,
});

/** These redirects ask for the same request at another address. With 302 and 303 a service may point to a new task. */
const MOVED = [301, 307, 308];

/** A gateway may have handed the request on before it gave one of these answers. */
const HANDED_ON = [408, 425, 499];

/** A gateway that gives one of these answers has not been connected with the service. 520 and 524 come after the request. */
const NOT_CONNECTED = [521, 522, 523, 525, 526];

const UNAVAILABLE = 503;

/** Whether a trigger of this package has taken a callback. */
export const isOk = ({ statusCode }: Pick<Answer, 'statusCode'>): boolean => statusCode === 200;

/** What a refusal means; all others are `rejected`. */
const BY_STATUS: Record<number, Verdict> = {
	401: VERDICTS.unauthorized,
	402: VERDICTS.noCredits,
	403: VERDICTS.forbidden,
	404: VERDICTS.notFound,
	405: { ...VERDICTS.rejected, scope: 'address' },
	407: { ...VERDICTS.rejected, scope: 'address' },
	410: VERDICTS.notFound,
	413: VERDICTS.tooLarge,
	429: VERDICTS.tooManyRequests,
};

function byStatus(statusCode: number): Verdict {
	if (statusCode < 200) return VERDICTS.unexpectedAnswer;
	if (statusCode < 300) return VERDICTS.answered;
	if (statusCode < 400) {
		return { ...VERDICTS.redirected, taken: MOVED.includes(statusCode) ? 'no' : 'unknown' };
	}
	if (NOT_CONNECTED.includes(statusCode)) return VERDICTS.unreachable;
	if (statusCode >= 500 || HANDED_ON.includes(statusCode)) return VERDICTS.serviceDown;
	return BY_STATUS[statusCode] ?? VERDICTS.rejected;
}

/**
 * Whether something before the service, such as a proxy, speaks: a service answers with JSON, or with an empty body. With
 * 4xx a service may also answer with a plain text, such as `Not Found`.
 */
function isOfStranger(status: number, body: string, spoken: unknown): boolean {
	if (spoken !== undefined || body.trim() === '') return false;
	const isRefusal = status >= 400 && status < 500 && !HANDED_ON.includes(status);
	return !isRefusal || /^\s*</.test(body);
}

/**
 * Says what an answer means. The specification does not show error answers (section 7), so the statuses have their
 * meanings in HTTP. Beside the status only a code of a short list decides, and no other word: a sentence may quote the
 * prompt. This is the only place that knows a status: creates, reads, downloads and callbacks ask here.
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
	const basis = byStatus(status);
	const isStranger = basis.kind !== 'redirected' && isOfStranger(status, body, spoken);
	const isOfLimit = basis.kind === 'tooManyRequests';
	const found: Classified = {
		...basis,
		status,
		speaker: isStranger ? 'stranger' : 'service',
		mayBeItem: basis.kind === 'forbidden' || (basis.kind === 'notFound' && !isStranger),
		retryAfterMs: status >= 400 ? retryAfterMs(headers, now, spoken, isOfLimit) : undefined,
		spoken,
	};
	if (saysNoCredits(found)) Object.assign(found, { ...VERDICTS.noCredits, mayBeItem: false });
	else if (isStranger && found.kind === 'answered') {
		Object.assign(found, VERDICTS.unexpectedAnswer);
	}
	if (found.kind === 'answered') return found;
	const asksToWait = status === UNAVAILABLE && found.retryAfterMs !== undefined && !isStranger;
	const said = wordsOf(body, spoken);
	return { ...found, said, ...(asksToWait && { taken: 'no', scope: 'account' }) };
}

/** The words of an answer, in one line. @param spoken the parsed body */
export const wordsOf = (body: string, spoken = parsedJson(body)): string | undefined =>
	findServiceMessage(spoken ?? (/^\s*</.test(body) ? undefined : body));

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

/** The codes of an account without credits, as `plainName` writes them. Services send them with 400, 403 and 429. */
export const NO_CREDITS = [
	'insufficientcredits',
	'insufficientquota',
	'insufficientuserquota',
	'insufficientbalance',
	'insufficientfunds',
	'outofcredits',
	'paymentrequired',
	'billinghardlimitreached',
];

/** The fields that name an error with a code, as `plainFields` writes them. */
const CODE_FIELDS = ['code', 'type', 'error', 'errorcode', 'errortype', 'reason'];

/** Whether a refusal has such a code as the whole value of a field. A status that leaves a task possible says more. */
function saysNoCredits({ kind, taken, spoken }: Classified): boolean {
	const isRefusal = kind === 'answered' ? !isOfTask(spoken) : taken === 'no';
	if (!isRefusal) return false;
	const codes = [...errorLayers(spoken)].flatMap((fields) =>
		CODE_FIELDS.map((name) => fields.get(name)),
	);
	return codes.some((code) => typeof code === 'string' && NO_CREDITS.includes(plainName(code)));
}
