import type { Blip } from './day';

/** What happens to one request or its answer. */
export const REQUEST_TROUBLES = [
	'answer lost',
	'request lost',
	'answer late',
	'answer garbled',
	'answer cut short',
	'answer without an id',
	'sent twice by the network',
	'connection refused',
	'no route, after it was sent',
] as const;

const PAGE = { body: '<html><h1>Forbidden</h1></html>', contentType: 'text/html' };

/** Those that are answers of the service, or of what stands before it. */
export const REFUSALS = [
	['429', { status: 429 }],
	['429 with Retry-After', { status: 429, retryAfter: 7 }],
	['503', { status: 503 }],
	['503 with Retry-After', { status: 503, retryAfter: 7 }],
	['500', { status: 500 }],
	['502', { status: 502, body: '<html><h1>Bad Gateway</h1></html>', contentType: 'text/html' }],
	["a firewall's 403", { status: 403, ...PAGE }],
	['404', { status: 404 }],
	['401', { status: 401 }],
] as const;

const GURU = { body: '<html><h1>Guru Meditation</h1></html>', retryAfter: 7 };

/** Answers of what stands before the service, which may cover a task, and answers that say nothing. */
export const STRANGE = [
	["a proxy's 503 with Retry-After", { status: 503, ...GURU }],
	["a proxy's 499", { status: 499, ...PAGE }],
	["a proxy's 520", { status: 520, ...PAGE }],
	['425', { status: 425 }],
	['204', { status: 204, body: '' }],
	['200 with nothing', { status: 200, body: '' }],
	['200 with 500 in its body', { status: 200, body: { code: 500, data: null } }],
] as const;

/** Refusals that say in other words how long to wait; and an account without credits. */
export const OTHER_REFUSALS = [
	['429 with a time in its body', { status: 429, body: {}, retryAfter: 7, retryAfterIn: 'body' }],
	['429 with RateLimit-Reset', { status: 429, retryAfter: 7, retryAfterIn: 'ratelimit-reset' }],
	['402', { status: 402 }],
	['423', { status: 423 }],
] as const;

export type RequestTrouble =
	| (typeof REQUEST_TROUBLES)[number]
	| (typeof REFUSALS | typeof STRANGE | typeof OTHER_REFUSALS)[number][0]
	| Blip
	| '303'
	| 'answer trickles'
	| 'TLS handshake broken off';

/** What users and strangers do. */
export const ACTS = [
	'stop',
	'retry',
	'stop and retry',
	'start',
	'redeliver',
	'switch off',
	'edit',
	'forge',
] as const;
export type Act = (typeof ACTS)[number];

/** `tasks end`: all of them, and their callbacks come. */
export const SLEEP_TROUBLES = [
	'stop',
	'kill',
	'tasks end',
	'clock set back',
	'clock set forward',
] as const;
export type SleepTrouble = (typeof SLEEP_TROUBLES)[number];
