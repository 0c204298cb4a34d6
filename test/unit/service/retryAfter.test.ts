import { retryAfterMs } from '../../../nodes/MediaGeneration/service/boundedAnswer';

const NOW = Date.parse('2026-01-01T12:00:00Z');

describe('the header Retry-After', () => {
	it.each([
		[' 7 ', 7000],
		['0', 0],
		['1.5', 1500],
		['9'.repeat(40), 30 * 86_400_000],
		['Thu, 01 Jan 2026 12:00:30 GMT', 30_000],
		['Thu, 01 Jan 2026 11:00:00 GMT', 0],
	])('%j means %d ms', (header, ms) => {
		expect(retryAfterMs({ 'retry-after': header }, NOW)).toBe(ms);
	});

	const NONE = ['soon', '', '  ', '-5', 'NaN', undefined, null, ['7'], 7];
	it.each(NONE)('%j means nothing', (header) => {
		expect(retryAfterMs({ 'retry-after': header }, NOW)).toBeUndefined();
	});
});

describe('how long to wait', () => {
	const SECONDS = NOW / 1000;
	const at = (seconds: number) => new Date((SECONDS + seconds) * 1000).toUTCString();
	// Each row has three values: in place of a missing value Jest hands over a callback, and waits for its call.
	it.each<[number | undefined, Record<string, string>, unknown]>([
		[1_500, { 'retry-after-ms': '1500', 'retry-after': '2' }, {}],
		// By the clock of the service, which is an hour behind.
		[30_000, { date: at(-3600), 'retry-after': at(-3570) }, {}],
		[7_000, { 'ratelimit-reset': '7' }, {}],
		[7_000, { 'x-ratelimit-reset': '7' }, {}],
		[7_000, { 'x-ratelimit-reset': String(SECONDS + 7) }, {}],
		[7_000, { 'x-ratelimit-reset': String(NOW + 7_000) }, {}],
		[7_000, { 'x-ratelimit-reset': at(7) }, {}],
		[7_000, { 'ratelimit-reset': '7', 'ratelimit-remaining': '0' }, {}],
		[undefined, { 'ratelimit-reset': '7', 'ratelimit-remaining': '3' }, {}],
		[2_000, { 'ratelimit-reset': '7', 'retry-after': '2' }, {}],
		[2_500, {}, { retry_after: 2.5 }],
		[2_500, {}, { error: { retryAfter: '2.5' } }],
		[2_500, {}, { detail: { retry_after_ms: 2500 } }],
		[2_500, {}, { data: { retry_after_seconds: 2.5 } }],
		[undefined, {}, { input: { retry_after: 7 } }],
		[undefined, {}, { retry_after: 'soon' }],
	])('is %j ms for %j %j', (ms, headers, body) => {
		expect(retryAfterMs(headers, NOW, body)).toBe(ms);
	});
});
