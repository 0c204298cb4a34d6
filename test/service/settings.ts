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
export type Occasionally = boolean | { times: number };

/** What a switch takes. */
interface Check<T> {
	readonly expects: string;
	readonly accepts: (value: unknown) => value is T;
}

function check<T>(expects: string, accepts: (value: unknown) => boolean): Check<T> {
	return { expects, accepts: accepts as Check<T>['accepts'] };
}

const isObject = (value: unknown): value is Record<string, unknown> =>
	typeof value === 'object' && value !== null && !Array.isArray(value);
const isAmount = (value: unknown): value is number =>
	typeof value === 'number' && Number.isFinite(value) && value >= 0;
const isStatus = (value: unknown) =>
	Number.isInteger(value) && Number(value) >= 200 && Number(value) <= 599;
const isOptional = (value: unknown, accepts: (value: unknown) => boolean) =>
	value === undefined || accepts(value);
const isRetryAfter = (value: unknown) => isAmount(value) || typeof value === 'string';
const isText = (value: unknown) => typeof value === 'string';
const isFlag = (value: unknown) => typeof value === 'boolean';

const amount = check<number>('a number of 0 or more', isAmount);
const flag = check<boolean>('true or false', isFlag);
const text = check<string>('a string', isText);
const anything = check<unknown>('any JSON value', () => true);
const fields = check<Readonly<Record<string, unknown>>>('an object', isObject);
const oneOf = <T extends string>(...values: readonly T[]) =>
	check<T>(`one of ${values.join(', ')}`, (value) => values.includes(value as T));
const milliseconds = check<Milliseconds>(
	'a number of milliseconds or [least, most]',
	(value) =>
		isAmount(value) || (Array.isArray(value) && value.length === 2 && value.every(isAmount)),
);
const limit = check<Limit>(
	'a number or { limit, retryAfter? }',
	(value) =>
		isAmount(value) ||
		(isObject(value) && isAmount(value.limit) && isOptional(value.retryAfter, isRetryAfter)),
);
const occasionally = check<Occasionally>(
	'true, false or { times }',
	(value) => isFlag(value) || (isObject(value) && isAmount(value.times)),
);
const refusal = check<number | Refusal>(
	'an HTTP status or { status, times?, retryAfter?, body?, contentType?, headers? }',
	(value) =>
		isStatus(value) ||
		(isObject(value) &&
			isStatus(value.status) &&
			isOptional(value.times, isAmount) &&
			isOptional(value.retryAfter, isRetryAfter) &&
			isOptional(value.contentType, isText) &&
			isOptional(value.headers, isObject)),
);
const redirect = check<boolean | string>(
	'true, false or an address',
	(value) => isFlag(value) || isText(value),
);

/** Every switch with what it takes: a mistyped switch is refused instead of silently doing nothing. */
const SWITCHES = {
	/** Time until a task is terminal. Default: 1 to 3 seconds. */
	latencyMs: milliseconds,
	outcome: oneOf('SUCCESS', 'FAILURE'),
	/** The task ends in FAILURE, whatever `outcome` says: a model that fails by chance. */
	taskFails: occasionally,
	failureMessage: text,
	/** Results of a task, each one billed. */
	resultCount: amount,
	/** Copies of a callback that are delivered at once. */
	callbackCopies: amount,
	callbackLost: flag,
	callbackDelayMs: milliseconds,
	/** Deliveries after the first that are tried while the answer is not 2xx. */
	callbackRetries: amount,
	/** Pause before the first retry; it doubles with each further one. */
	callbackBackoffMs: amount,
	/** `event`: the body is an event, which has an id of its own and the record in `data`. */
	callbackShape: oneOf('record', 'event'),
	createStatus: refusal,
	readStatus: refusal,
	creditsStatus: refusal,
	createDelayMs: milliseconds,
	readDelayMs: milliseconds,
	/** The task is created, but the connection is dropped before the answer. */
	createLost: occasionally,
	/** The connection is dropped on a read. */
	readDropped: occasionally,
	/** The body of a read ends in the middle. */
	readCutShort: occasionally,
	/** Unfinished tasks of the account, above which a create is answered with 429. */
	concurrencyLimit: limit,
	/** Creates of the account in a second, above which one is answered with 429; as many at once after a second's rest. */
	createsPerSecond: limit,
	/** For how long the endpoint that reads a new task knows nothing of it. */
	createLagMs: amount,
	/** For how long a task that has ended, and was called back, is still read as pending. */
	endLagMs: amount,
	/** `lower`: the states are written `pending`, `success`, `failure`. */
	stateCase: oneOf('upper', 'lower'),
	omitResultUrls: flag,
	/** The record repeats the `webhook_url`, as some services do. */
	repeatWebhookUrl: flag,
	/** Merged into the task record. */
	extraFields: fields,
	createShape: oneOf(
		'flat',
		'wrapped',
		'task',
		'record',
		'snake',
		'id',
		'missing',
		'array',
		'text',
		'html',
	),
	/** The body of the credits endpoint; the string `$balance` in it stands for the balance. */
	creditsShape: anything,
	mediaStatus: refusal,
	mediaDelayMs: milliseconds,
	/** 302 to the same media at the API's origin, or to the given address. */
	mediaRedirect: redirect,
	/** The result is a stream of this many bytes. */
	mediaBytes: amount,
	/** Content type of the media. */
	mediaType: text,
	/** A web page in place of the media. */
	mediaHtml: flag,
	/** The body is shorter than its `Content-Length`. */
	mediaTruncated: flag,
	/** Half of the body comes, and then nothing more, though the connection stays. */
	mediaStalls: flag,
	mediaEmpty: flag,
};

/** Settings of the service. What is left out behaves as the specification says. */
export type Settings = {
	[Name in keyof typeof SWITCHES]?: (typeof SWITCHES)[Name] extends Check<infer T> ? T : never;
};

const isSwitch = (name: string): name is keyof Settings => Object.hasOwn(SWITCHES, name);

/** Checks settings that came from outside; `null` stands for a switch that is not set. */
export function parseSettings(value: unknown): Settings {
	if (!isObject(value)) {
		throw new ServiceError(400, 'invalid_settings', 'Settings are a JSON object of switches.');
	}
	for (const [name, given] of Object.entries(value)) {
		if (!isSwitch(name)) {
			throw new ServiceError(
				400,
				'invalid_settings',
				`There is no switch "${name}". There are: ${Object.keys(SWITCHES).join(', ')}.`,
			);
		}
		const { accepts, expects } = SWITCHES[name];
		if (given !== null && given !== undefined && !accepts(given)) {
			throw new ServiceError(400, 'invalid_settings', `The switch "${name}" takes ${expects}.`);
		}
	}
	return value;
}

/** Settings with others laid over them; `null` takes a switch back (JSON merge patch). */
export function mergeSettings(settings: Settings, changes: Settings): Settings {
	return Object.fromEntries(
		Object.entries({ ...settings, ...changes }).filter(
			([, value]) => value !== null && value !== undefined,
		),
	);
}

/** A duration drawn from a switch. */
export function draw(value: Milliseconds | undefined, otherwise: Milliseconds): number {
	const chosen = value ?? otherwise;
	if (typeof chosen === 'number') return chosen;
	const [least, most] = chosen;
	return least + Math.random() * (most - least);
}
