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

/** Always, or only the first `times` times. */
export type Occasionally = boolean | { times: number };

export const CREATE_SHAPES = [
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
] as const;

/** Every switch of the service. What is left out behaves as the specification says. */
export interface Settings {
	/** Time until a task is terminal. Default: 1 to 3 seconds. */
	latencyMs?: Milliseconds;
	outcome?: Outcome;
	/** The task ends in FAILURE, whatever `outcome` says: a model that fails by chance. */
	taskFails?: Occasionally;
	failureMessage?: string;
	/** Results of a task, each one billed. */
	resultCount?: number;

	/** Copies of a callback that are delivered at once. */
	callbackCopies?: number;
	callbackLost?: boolean;
	callbackDelayMs?: Milliseconds;
	/** Deliveries after the first that are tried while the answer is not 2xx. */
	callbackRetries?: number;
	/** Pause before the first retry; it doubles with each further one. */
	callbackBackoffMs?: number;

	createStatus?: number | Refusal;
	readStatus?: number | Refusal;
	creditsStatus?: number | Refusal;
	createDelayMs?: Milliseconds;
	readDelayMs?: Milliseconds;
	/** The task is created, but the connection is dropped before the answer. */
	createLost?: Occasionally;
	/** The connection is dropped on a read. */
	readDropped?: Occasionally;
	/** The body of a read ends in the middle. */
	readCutShort?: Occasionally;
	/** Unfinished tasks of the account, above which a create is answered with 429. */
	concurrencyLimit?: number | { limit: number; retryAfter?: number | string };
	/** Creates of the account in a second, above which one is answered with 429; as many at once after a second's rest. */
	createsPerSecond?: number;

	/** `lower`: the states are written `pending`, `success`, `failure`. */
	stateCase?: 'upper' | 'lower';
	omitResultUrls?: boolean;
	/** The record repeats the `webhook_url`, as some services do. */
	repeatWebhookUrl?: boolean;
	/** Merged into the task record. */
	extraFields?: Readonly<Record<string, unknown>>;
	createShape?: (typeof CREATE_SHAPES)[number];
	/** The body of the credits endpoint; the string `$balance` in it stands for the balance. */
	creditsShape?: unknown;

	mediaStatus?: number | Refusal;
	mediaDelayMs?: Milliseconds;
	/** 302 to the same media at the API's origin, or to the given address. */
	mediaRedirect?: boolean | string;
	/** The result is a stream of this many bytes. */
	mediaBytes?: number;
	/** Content type of the media. */
	mediaType?: string;
	/** A web page in place of the media. */
	mediaHtml?: boolean;
	/** The body is shorter than its `Content-Length`. */
	mediaTruncated?: boolean;
	/** Half of the body comes, and then nothing more, though the connection stays. */
	mediaStalls?: boolean;
	mediaEmpty?: boolean;
}

/** The switches that stand for an error answer. */
export type RefusalSwitch = 'createStatus' | 'readStatus' | 'creditsStatus' | 'mediaStatus';
/** The switches that stand for an accident, of the connection or of a model. */
export type AccidentSwitch = 'createLost' | 'readDropped' | 'readCutShort' | 'taskFails';

type Check = { readonly expects: string; readonly accepts: (value: unknown) => boolean };

const isObject = (value: unknown): value is Record<string, unknown> =>
	typeof value === 'object' && value !== null && !Array.isArray(value);
const isAmount = (value: unknown): value is number =>
	typeof value === 'number' && Number.isFinite(value) && value >= 0;
const isStatus = (value: unknown) =>
	Number.isInteger(value) && Number(value) >= 200 && Number(value) <= 599;
const isOptional = (value: unknown, accepts: (value: unknown) => boolean) =>
	value === undefined || accepts(value);
const isRetryAfter = (value: unknown) => isAmount(value) || typeof value === 'string';

const amount: Check = { expects: 'a number of 0 or more', accepts: isAmount };
const flag: Check = { expects: 'true or false', accepts: (value) => typeof value === 'boolean' };
const text: Check = { expects: 'a string', accepts: (value) => typeof value === 'string' };
const anything: Check = { expects: 'any JSON value', accepts: () => true };
const fields: Check = { expects: 'an object', accepts: isObject };
const oneOf = (...values: readonly string[]): Check => ({
	expects: `one of ${values.join(', ')}`,
	accepts: (value) => typeof value === 'string' && values.includes(value),
});
const milliseconds: Check = {
	expects: 'a number of milliseconds or [least, most]',
	accepts: (value) =>
		isAmount(value) || (Array.isArray(value) && value.length === 2 && value.every(isAmount)),
};
const occasionally: Check = {
	expects: 'true, false or { times }',
	accepts: (value) => typeof value === 'boolean' || (isObject(value) && isAmount(value.times)),
};
const refusal: Check = {
	expects: 'an HTTP status or { status, times?, retryAfter?, body?, contentType?, headers? }',
	accepts: (value) =>
		isStatus(value) ||
		(isObject(value) &&
			isStatus(value.status) &&
			isOptional(value.times, isAmount) &&
			isOptional(value.retryAfter, isRetryAfter) &&
			isOptional(value.contentType, text.accepts) &&
			isOptional(value.headers, isObject)),
};

/** Every switch with what it accepts: a mistyped switch is refused instead of silently doing nothing. */
const SWITCHES: Readonly<Record<keyof Settings, Check>> = {
	latencyMs: milliseconds,
	outcome: oneOf('SUCCESS', 'FAILURE'),
	taskFails: occasionally,
	failureMessage: text,
	resultCount: amount,
	callbackCopies: amount,
	callbackLost: flag,
	callbackDelayMs: milliseconds,
	callbackRetries: amount,
	callbackBackoffMs: amount,
	createStatus: refusal,
	readStatus: refusal,
	creditsStatus: refusal,
	createDelayMs: milliseconds,
	readDelayMs: milliseconds,
	createLost: occasionally,
	readDropped: occasionally,
	readCutShort: occasionally,
	concurrencyLimit: {
		expects: 'a number or { limit, retryAfter? }',
		accepts: (value) =>
			isAmount(value) ||
			(isObject(value) && isAmount(value.limit) && isOptional(value.retryAfter, isRetryAfter)),
	},
	createsPerSecond: amount,
	stateCase: oneOf('upper', 'lower'),
	omitResultUrls: flag,
	repeatWebhookUrl: flag,
	extraFields: fields,
	createShape: oneOf(...CREATE_SHAPES),
	creditsShape: anything,
	mediaStatus: refusal,
	mediaDelayMs: milliseconds,
	mediaRedirect: {
		expects: 'true, false or an address',
		accepts: (value) => flag.accepts(value) || text.accepts(value),
	},
	mediaBytes: amount,
	mediaType: text,
	mediaHtml: flag,
	mediaTruncated: flag,
	mediaStalls: flag,
	mediaEmpty: flag,
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

/** The settings of the service, and how often the limited ones were used. */
export class Switches {
	private current: Settings;
	private readonly used = new Map<string, number>();

	constructor(private readonly initial: Settings = {}) {
		this.current = mergeSettings({}, parseSettings(initial));
	}

	get all(): Settings {
		return this.current;
	}

	/** Merges settings into the present ones; a limited switch that is set again starts over. */
	configure(changes: Settings): void {
		this.current = mergeSettings(this.current, parseSettings(changes));
		for (const name of Object.keys(changes)) this.used.delete(name);
	}

	reset(): void {
		this.current = mergeSettings({}, this.initial);
		this.used.clear();
	}

	/** What holds for one task: its own switches over those of the service. */
	for(own: Settings = {}): Settings {
		return { ...this.current, ...own };
	}

	/**
	 * The error answer that is due now, if one is.
	 * @param scope what the uses of a task's own switch are counted by
	 */
	refusal(name: RefusalSwitch, own?: Settings, scope?: () => string): Refusal | undefined {
		const value = this.for(own)[name];
		if (value === undefined) return undefined;
		const due = typeof value === 'number' ? { status: value } : value;
		return this.use(name, due.times, own, scope) ? due : undefined;
	}

	/** Whether an accident is due now; counted as in {@link refusal}. */
	accident(name: AccidentSwitch, own?: Settings, scope?: () => string): boolean {
		const value = this.for(own)[name];
		if (!value) return false;
		return this.use(name, value === true ? undefined : value.times, own, scope);
	}

	private use(name: string, times = Infinity, own: Settings = {}, scope = () => ''): boolean {
		if (times === Infinity) return true;
		const counter = name in own ? `${name} ${scope()}` : name;
		const used = this.used.get(counter) ?? 0;
		if (used >= times) return false;
		this.used.set(counter, used + 1);
		return true;
	}
}

/** A duration drawn from a switch. */
export function draw(value: Milliseconds | undefined, otherwise: Milliseconds): number {
	const chosen = value ?? otherwise;
	if (typeof chosen === 'number') return chosen;
	const [least, most] = chosen;
	return least + Math.random() * (most - least);
}
