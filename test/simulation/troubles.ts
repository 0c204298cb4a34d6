/** What happens to one request or its answer. */
export const REQUEST_TROUBLES = [
	'answer lost',
	'request lost',
	'answer late',
	'answer garbled',
	'answer cut short',
	'answer without an id',
	'answer trickles',
	'sent twice by the network',
	'connection refused',
	'TLS handshake broken off',
	'no route, after it was sent',
	'303',
] as const;

const page = (title: string | number) => ({
	body: `<html><head><title>${title}</title></head></html>`,
	contentType: 'text/html',
});

/** Answers of what stands before the service, which may cover a task, and answers that say nothing. */
const STRANGE = [
	["a proxy's 503 with Retry-After", { status: 503, ...page('Guru Meditation'), retryAfter: 7 }],
	["a proxy's 499", { status: 499, ...page(499) }],
	["a proxy's 520", { status: 520, ...page(520) }],
	['425', { status: 425 }],
	['204', { status: 204, body: '' }],
	['200 with nothing', { status: 200, body: '' }],
	['200 with 500 in its body', { status: 200, body: { code: 500, data: null } }],
] as const;

/** Answers of the service, or of what stands before it, to one request. */
export const REFUSALS = [
	['429', { status: 429 }],
	['429 with Retry-After', { status: 429, retryAfter: 7 }],
	['429 with a time in its body', { status: 429, body: {}, retryAfter: 7, retryAfterIn: 'body' }],
	['429 with RateLimit-Reset', { status: 429, retryAfter: 7, retryAfterIn: 'ratelimit-reset' }],
	['503', { status: 503 }],
	['503 with Retry-After', { status: 503, retryAfter: 7 }],
	['500', { status: 500 }],
	['502', { status: 502, ...page('Bad Gateway') }],
	["a firewall's 403", { status: 403, ...page('Forbidden') }],
	['404', { status: 404 }],
	['401', { status: 401 }],
	['402', { status: 402 }],
	['423', { status: 423 }],
	...STRANGE,
] as const;

/** What may answer in place of the service while a proxy, a firewall or the service itself is redeployed. */
export const BLIPS = [
	['blip: 404 as text', { status: 404, body: '404 page not found\n', contentType: 'text/plain' }],
	['blip: 404 as a page', { status: 404, ...page(404) }],
	['blip: 404 as JSON', { status: 404, body: { message: 'no Route matched with those values' } }],
	['blip: 403 as a page', { status: 403, ...page(403) }],
	['blip: 403 as JSON', { status: 403, body: { message: 'Forbidden' } }],
	['blip: 401', { status: 401, body: { error: { message: 'invalid api key' } } }],
	['blip: 400', { status: 400, body: { error: 'upstream request failed' } }],
	['blip: 405', { status: 405, ...page(405) }],
	['blip: 429', { status: 429, body: { error: 'slow down' } }],
	['blip: 500', { status: 500, body: { error: 'internal' } }],
	['blip: 502', { status: 502, ...page(502) }],
	['blip: 504', { status: 504, ...page(504) }],
	['blip: 503', { status: 503, ...page(503), retryAfter: 5 }],
] as const;

/** What else may last. */
export const LASTING = [
	'service away',
	'media host away',
	'database away',
	'reads refused but for one a second',
	'each fifth read fails',
] as const;

export type RequestTrouble =
	(typeof REQUEST_TROUBLES)[number] | (typeof REFUSALS)[number][0] | (typeof BLIPS)[number][0];

/** Whether an answer may come from something that stands before a service which has taken the task. */
export const mayCover = (trouble: RequestTrouble, status: number, asksToWait: boolean): boolean =>
	STRANGE.some(([name]) => name === trouble) ||
	(status >= 500 && !asksToWait && !trouble.startsWith('blip'));

/** What users and strangers do. */
export const ACTS = [
	'stop',
	'retry',
	'retry what sleeps',
	'stop and retry',
	'start',
	'redeliver',
	'switch off',
	'edit',
	'forge',
	'forge',
] as const;

/** `tasks end`: all of them, and their callbacks come. */
export const SLEEP_TROUBLES = [
	'stop',
	'kill',
	'kill',
	'tasks end',
	'clock set back',
	'clock set forward',
] as const;
