import { ServiceError } from './errors';

/** A fixed number of milliseconds, or one drawn between two limits. */
export type Milliseconds = number | readonly [number, number];

export type Outcome = 'SUCCESS' | 'FAILURE';

/** An answer with an error status; a bare number is short for `{ status }`. */
export interface Refusal {
	status: number;
	/** Refuse only this many times, then answer normally. */
	times?: number;
	/** Seconds, or an HTTP date. */
	retryAfter?: number | string;
	body?: unknown;
	contentType?: string;
	/** Further headers, such as the `location` of a redirect. */
	headers?: Readonly<Record<string, string>>;
}

/** A limit of the account, and what a refusal says: how long to wait, in seconds, or an HTTP date. */
export type Limit = number | { limit: number; retryAfter?: number | string };

/** Always, or only the first `times` times. */
type Occasionally = boolean | { times: number };

export const isObject = (value: unknown): value is Record<string, unknown> =>
	typeof value === 'object' && value !== null && !Array.isArray(value);
const isAmount = (value: unknown): value is number => typeof value === 'number' && value >= 0;
const isText = (value: unknown): value is string => typeof value === 'string';
const isFlag = (value: unknown): value is boolean => typeof value === 'boolean';
const isAnything = (value: unknown): value is unknown => value !== undefined;
const isDuration = (value: unknown): value is Milliseconds =>
	isAmount(value) || (Array.isArray(value) && value.length === 2 && value.every(isAmount));
const isLimit = (value: unknown): value is Limit => isAmount(isObject(value) ? value.limit : value);
const isOccasional = (value: unknown): value is Occasionally =>
	isFlag(value) || (isObject(value) && isAmount(value.times));
const isRefusal = (value: unknown): value is number | Refusal =>
	isAmount(isObject(value) ? value.status : value);
const isOneOf =
	<T extends string>(...values: readonly T[]) =>
	(value: unknown): value is T =>
		values.includes(value as T);

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
	callbackShape: isOneOf('record', 'event'),
	createStatus: isRefusal,
	readStatus: isRefusal,
	creditsStatus: isRefusal,
	createDelayMs: isDuration,
	readDelayMs: isDuration,
	createLost: isOccasional,
	readDropped: isOccasional,
	readCutShort: isOccasional,
	concurrencyLimit: isLimit,
	createsPerSecond: isLimit,
	createLagMs: isAmount,
	endLagMs: isAmount,
	repeatWebhookUrl: isFlag,
	extraFields: isObject,
	createShape: isOneOf('flat', 'record', 'missing', 'array', 'html'),
	creditsShape: isAnything,
	mediaStatus: isRefusal,
	mediaDelayMs: isDuration,
	mediaRedirect: isFlag,
	mediaBytes: isAmount,
	mediaType: isText,
	mediaHtml: isFlag,
	mediaTruncated: isFlag,
	mediaStalls: isFlag,
	mediaEmpty: isFlag,
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
