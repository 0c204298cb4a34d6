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
export type RequestTrouble =
	(typeof REQUEST_TROUBLES)[number] | (typeof REFUSALS)[number][0] | '303';

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
