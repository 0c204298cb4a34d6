import { ServiceError } from './errors';

/** A fixed number of milliseconds, or one drawn between two limits. */
export type Milliseconds = number | readonly [number, number];

export type Outcome = 'SUCCESS' | 'FAILURE';

/** Which of the requests a switch is for: all of them, unless this says otherwise. */
export interface When {
	/** None of the first so many. */
	after?: number;
	/** Only so many. */
	times?: number;
	/** Only each nth one. */
	every?: number;
}

/** How a refusal says how long to wait: in a header, or in its body. `x-ratelimit-reset` names a moment. */
export const WAITS = [
	'retry-after',
	'retry-after-ms',
	'ratelimit-reset',
	'x-ratelimit-reset',
	'body',
] as const;

export interface AskedWait {
	/** Seconds; in `retry-after` an HTTP date as well. */
	retryAfter?: number | string;
	/** Default: `retry-after`. */
	retryAfterIn?: (typeof WAITS)[number];
}

/** An answer in place of the usual one; a bare number is short for `{ status }`. */
export interface Refusal extends When, AskedWait {
	status: number;
	/** Whether what was asked for is done all the same: the answer of something before the service. */
	taken?: boolean;
	/** A text that begins with `<` is a web page, unless `contentType` says otherwise. */
	body?: unknown;
	contentType?: string;
	/** Further headers, such as the `location` of a redirect. */
	headers?: Readonly<Record<string, string>>;
}

/** A limit of the account, and how long a refusal asks to wait. */
export type Limit = number | ({ limit: number } & AskedWait);

/**
 * What becomes of an answer on its way: the connection ends before it (`lost`) or in its middle (`cut short`), or it
 * comes byte by byte, after its head or with it.
 */
const FATES = ['lost', 'cut short', 'trickles', 'trickles from its head'] as const;
export type Fate = (typeof FATES)[number];

/** The way of an answer; a bare word is short for `{ fate }`. */
interface LongWay extends When {
	fate: Fate;
	/** Between two bytes of an answer that trickles, milliseconds; 1,000 if left out. */
	everyMs?: number;
}
export type Way = Fate | LongWay;

/** Always, or only sometimes. */
type Occasionally = boolean | When;

export const isObject = (value: unknown): value is Record<string, unknown> =>
	typeof value === 'object' && value !== null && !Array.isArray(value);
const isAmount = (value: unknown): value is number => typeof value === 'number' && value >= 0;
const isText = (value: unknown): value is string => typeof value === 'string';
const isFlag = (value: unknown): value is boolean => typeof value === 'boolean';
const isAnything = (value: unknown): value is unknown => value !== undefined;
const isDuration = (value: unknown): value is Milliseconds =>
	isAmount(value) || (Array.isArray(value) && value.length === 2 && value.every(isAmount));
const isOneOf =
	<T extends string>(...values: readonly T[]) =>
	(value: unknown): value is T =>
		values.includes(value as T);

type Check = (value: unknown) => boolean;

/** Whether a value is an object with this field, and perhaps with others of these. */
const hasParts = (value: unknown, needed: string, parts: Record<string, Check>): boolean =>
	isObject(value) &&
	(needed === '' || needed in value) &&
	Object.entries(value).every(([name, part]) => part === undefined || parts[name]?.(part));

const WHEN = { after: isAmount, times: isAmount, every: isAmount };
const WAIT = {
	retryAfter: (value: unknown) => isAmount(value) || isText(value),
	retryAfterIn: isOneOf(...WAITS),
};
const REFUSAL = {
	...{ ...WHEN, ...WAIT, status: isAmount, taken: isFlag },
	...{ body: isAnything, contentType: isText, headers: isObject },
};
const LIMIT = { ...WAIT, limit: isAmount };
const WAY = { ...WHEN, fate: isOneOf(...FATES), everyMs: isAmount };

const isLimit = (value: unknown): value is Limit =>
	isAmount(value) || hasParts(value, 'limit', LIMIT);
const isOccasional = (value: unknown): value is Occasionally =>
	isFlag(value) || hasParts(value, '', WHEN);
const isRefusal = (value: unknown): value is number | Refusal =>
	isAmount(value) || hasParts(value, 'status', REFUSAL);
const isWay = (value: unknown): value is Way => WAY.fate(value) || hasParts(value, 'fate', WAY);

/** Every switch with what it takes. The README says what each one does. */
const SWITCHES = {
	latencyMs: isDuration,
	outcome: isOneOf('SUCCESS', 'FAILURE'),
	taskFails: isOccasional,
	failureMessage: isText,
	resultCount: isAmount,
	callbackCopies: isAmount,
	callbackLost: isFlag,
	callbackDelayMs: isDuration,
	callbackBackoffMs: isAmount,
	createStatus: isRefusal,
	readStatus: isRefusal,
	creditsStatus: isRefusal,
	mediaStatus: isRefusal,
	createWay: isWay,
	readWay: isWay,
	creditsWay: isWay,
	mediaWay: isWay,
	readDelayMs: isDuration,
	mediaDelayMs: isDuration,
	concurrencyLimit: isLimit,
	createsPerSecond: isLimit,
	readsPerSecond: isLimit,
	createLagMs: isAmount,
	endLagMs: isAmount,
	repeatWebhookUrl: isFlag,
	extraFields: isObject,
	createShape: isAnything,
	readShape: isAnything,
	callbackShape: isAnything,
	creditsShape: isAnything,
	resultShape: isAnything,
	linkLifeMs: isAmount,
	mediaBelowBase: isFlag,
	mediaNeedsKey: isFlag,
	mediaRedirect: isFlag,
	mediaBytes: isAmount,
	mediaType: isText,
};

/** Settings of the service. What is left out behaves as the specification says. */
export type Settings = {
	[Name in keyof typeof SWITCHES]?: (typeof SWITCHES)[Name] extends (
		value: unknown,
	) => value is infer T
		? T
		: never;
};

/** @throws ServiceError 400 for a mistyped switch, which would silently do nothing */
export function parseSettings(value: object): Settings {
	for (const [name, given] of Object.entries(value)) {
		const accepts = Object.entries(SWITCHES).find(([known]) => known === name)?.[1];
		if (accepts && (given === undefined || accepts(given))) continue;
		const message = accepts
			? `The switch "${name}" does not take ${JSON.stringify(given)}.`
			: `There is no switch "${name}".`;
		throw new ServiceError(400, 'invalid_settings', message);
	}
	return value;
}

/** A duration drawn from a switch, milliseconds. */
export function draw(value: Milliseconds = 0): number {
	if (typeof value === 'number') return value;
	const [least, most] = value;
	return least + Math.random() * (most - least);
}
