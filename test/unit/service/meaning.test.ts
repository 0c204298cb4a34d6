import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';

import type { Answer } from '../../../nodes/MediaGeneration/service/boundedAnswer';
import {
	classifyAnswer,
	type Meaning,
	meaningOf,
	NO_CREDITS,
} from '../../../nodes/MediaGeneration/service/meaning';
import { ServiceError } from '../../../nodes/MediaGeneration/service/serviceError';
import { plainName } from '../../../nodes/MediaGeneration/shared/json';

const NOW = Date.UTC(2026, 0, 1);

const HTML = '<!doctype html><title>Error</title><h1>Guru Meditation</h1>';
const TEXT = 'upstream connect error or disconnect/reset before headers';
const CLOUDFLARE = { server: 'cloudflare', 'cf-ray': '8f0-FRA' };
const NGINX = { server: 'nginx' };
const asking = (seconds: number) => ({ 'retry-after': String(seconds) });

/** An answer: its status, its body (JSON unless it is a text) and its headers. */
type Given = [status: number, body?: unknown, headers?: Record<string, string>];

const answer = ([statusCode, body = {}, headers = {}]: Given): Answer => ({
	statusCode,
	headers,
	body: typeof body === 'string' ? body : JSON.stringify(body),
});

const classify = (...given: Given) => classifyAnswer(answer(given), NOW);

type Row = [
	kind: Meaning['kind'],
	speaker: Meaning['speaker'],
	taken: Meaning['taken'],
	scope: Meaning['scope'],
	again: boolean | number,
	...answers: Given[],
];

const limit = (message: string, code = 'rate_limit_exceeded') => ({ error: { code, message } });

/** What each answer means: the table of docs/service.md, with its cases. */
const TABLE: Row[] = [
	[
		'answered',
		'service',
		'yes',
		'item',
		false,
		[200],
		[201, { taskId: 'x' }],
		[202, ''],
		[204, ''],
	],
	['answered', 'service', 'yes', 'item', false, [200, { code: 500, data: null }], [200, '"x"']],
	// A task is a task, whatever else stands beside it.
	['answered', 'service', 'yes', 'item', false, [200, { code: 402, taskId: 'x' }]],
	['answered', 'service', 'yes', 'item', false, [200, { status: 404, state: 'PENDING' }]],
	['unexpectedAnswer', 'stranger', 'unknown', 'address', true, [200, HTML], [200, '{"state": "S']],

	// A status in the body of a 200.
	['noCredits', 'service', 'no', 'account', false, [200, { code: 402, msg: 'Top up' }]],
	['notFound', 'service', 'no', 'address', false, [200, { code: '404', data: null }]],
	['unauthorized', 'service', 'no', 'key', false, [200, { statusCode: 401 }]],
	['tooManyRequests', 'service', 'no', 'account', true, [200, { code: 429 }]],
	['serviceDown', 'service', 'unknown', 'item', true, [200, { code: 408 }]],

	['rejected', 'service', 'no', 'item', false, [400], [409], [422], [423], [400, '']],
	['tooLarge', 'service', 'no', 'item', false, [413], [413, TEXT], [200, { code: 413 }]],
	['tooLarge', 'stranger', 'no', 'item', false, [413, HTML]],
	['rejected', 'service', 'no', 'item', false, [400, 'Bad prompt'], [422, 'Bad seed\n']],
	['rejected', 'service', 'no', 'address', false, [405], [407], [407, 'Proxy login']],
	['rejected', 'stranger', 'no', 'address', false, [407, HTML]],
	['rejected', 'stranger', 'no', 'item', false, [400, HTML], [422, HTML]],
	['unauthorized', 'service', 'no', 'key', false, [401], [401, ''], [401, 'Who?']],
	['unauthorized', 'stranger', 'no', 'key', false, [401, HTML]],
	['forbidden', 'service', 'no', 'key', false, [403], [403, '"Forbidden"'], [403, 'Blocked']],
	['forbidden', 'stranger', 'no', 'key', false, [403, HTML]],
	['notFound', 'service', 'no', 'address', false, [404], [410], [404, '']],
	['notFound', 'service', 'no', 'address', false, [404, 'Not Found'], [410, 'Gone\n']],
	['notFound', 'stranger', 'no', 'address', false, [404, HTML], [410, HTML]],
	['redirected', 'service', 'no', 'address', false, [301], [307, HTML], [308, '']],
	['redirected', 'service', 'unknown', 'address', false, [302], [303, HTML], [300]],

	// Money first: these may cover a task.
	['serviceDown', 'service', 'unknown', 'item', true, [500], [502], [503], [504, ''], [520], [599]],
	['serviceDown', 'service', 'unknown', 'item', true, [408], [425], [499]],
	['serviceDown', 'stranger', 'unknown', 'item', true, [524, HTML], [530, HTML, CLOUDFLARE]],
	// The gateway was not connected with the service.
	[
		'unreachable',
		'service',
		'no',
		'address',
		true,
		[521],
		[522],
		[523, ''],
		[525],
		[526, {}, NGINX],
	],
	[
		'unreachable',
		'stranger',
		'no',
		'address',
		true,
		[521, HTML, CLOUDFLARE],
		[522, TEXT],
		[526, HTML],
	],
	['unreachable', 'stranger', 'no', 'address', 7_000, [521, HTML, asking(7)]],
	['serviceDown', 'stranger', 'unknown', 'item', true, [502, HTML], [520, TEXT], [408, HTML]],
	['serviceDown', 'stranger', 'unknown', 'item', 7_000, [503, HTML, asking(7)]],
	['serviceDown', 'stranger', 'unknown', 'item', 7_000, [503, TEXT, asking(7)]],
	['serviceDown', 'stranger', 'unknown', 'item', 7_000, [425, HTML, asking(7)]],
	['serviceDown', 'service', 'unknown', 'item', 7_000, [500, {}, asking(7)], [499, {}, asking(7)]],
	['serviceDown', 'service', 'no', 'account', 7_000, [503, {}, asking(7)]],
	['serviceDown', 'service', 'no', 'account', 7_000, [503, '', asking(7)]],
	['serviceDown', 'service', 'no', 'account', 7_000, [503, { retry_after: 7 }]],
	// This header says nothing of a service that is down.
	['serviceDown', 'service', 'unknown', 'item', true, [503, {}, { 'ratelimit-reset': '7' }]],

	['tooManyRequests', 'service', 'no', 'account', true, [429], [429, ''], [429, 'Slow down']],
	['tooManyRequests', 'stranger', 'no', 'account', true, [429, HTML]],
	['tooManyRequests', 'service', 'no', 'account', 7_000, [429, {}, asking(7)]],
	['tooManyRequests', 'service', 'no', 'account', 7_000, [429, {}, { 'ratelimit-reset': '7' }]],
	['tooManyRequests', 'service', 'no', 'account', 7_000, [429, { error: { retry_after: 7 } }]],
	// Whatever the words say, a limit is a limit.
	[
		...(['tooManyRequests', 'service', 'no', 'account', true] as const),
		[429, limit('Rate limit reached: 3 per minute. See your plan and billing.')],
		[429, limit('Too many concurrent tasks: quota of 2 running tasks', 'QUOTA_EXCEEDED')],
		[429, limit('The quota per minute is used up', 'limit')],
		[429, { message: 'Your credit balance is too low' }],
		[429, { error: 'Quota exceeded' }],
		[429, 'No credits left'],
	],
	[
		...(['tooManyRequests', 'service', 'no', 'account', 7_000] as const),
		[429, limit('Slow down or upgrade your billing plan', 'limit'), asking(7)],
	],

	// An empty account: the status, or a code of the list, whole.
	['noCredits', 'service', 'no', 'account', false, [402], [402, '']],
	['noCredits', 'stranger', 'no', 'account', false, [402, HTML]],
	[
		...(['noCredits', 'service', 'no', 'account', false] as const),
		[429, limit('You exceeded your current quota, check your plan', 'insufficient_quota')],
		[400, { error: { type: 'billing_hard_limit_reached' } }],
		[403, { errors: [{ code: 'INSUFFICIENT_BALANCE' }] }],
		[400, { code: 'insufficient_credits', message: 'No' }],
		[404, { error: 'insufficient_funds' }],
		[200, { code: 'InsufficientCredits' }],
	],
	// The code of a task, of an answer that may cover a task, and codes that are not whole.
	[
		...(['answered', 'service', 'yes', 'item', false] as const),
		[200, { code: 'insufficient_credits', taskId: 'x' }],
		[200, { balance: 0, status: 'insufficient_balance' }],
	],
	['serviceDown', 'service', 'unknown', 'item', true, [500, { code: 'insufficient_credits' }]],
	[
		...(['rejected', 'service', 'no', 'item', false] as const),
		[400, { code: 'insufficient_credits_field' }],
		[400, { message: 'insufficient_credits' }],
		[400, { input: { type: 'insufficient_credits' } }],
		[400, { error: 'Bad field: credits' }],
	],
	// The prompt, and not the account.
	[
		...(['forbidden', 'service', 'no', 'key', false] as const),
		[403, { error: 'The prompt "a credit card" is not allowed' }],
		[403, { error: "The prompt 'a gymnast on a balance beam' was blocked" }],
		[403, { detail: 'You have run out of credits' }],
	],
];

const CASES = TABLE.flatMap(([kind, speaker, taken, scope, again, ...answers]) =>
	answers.map((given) => {
		const retryAfterMs = typeof again === 'number' ? again : undefined;
		return [given, { kind, speaker, taken, scope, again: again !== false, retryAfterMs }] as const;
	}),
);

it.each(CASES)('%j means %j', (given, meaning) => {
	const { kind, speaker, taken, scope, again, retryAfterMs } = classify(...given);
	expect({ kind, speaker, taken, scope, again, retryAfterMs }).toEqual(meaning);
});

it.each<[boolean, ...Given]>([
	[true, 403],
	[true, 403, HTML],
	[false, 401],
	[true, 404],
	[true, 404, { error: 'No such model' }],
	[false, 404, HTML],
	[false, 402],
	[false, 403, { code: 'insufficient_credits' }],
])('may be about this item alone (%j): %j', (mayBeItem, ...given) => {
	expect(classify(...given).mayBeItem).toBe(mayBeItem);
});

it('nothing but a certain no is sent again: what may be a task never is', () => {
	const sentAgain = CASES.filter(([, { taken, again }]) => again && taken === 'no');
	expect(new Set(sentAgain.map(([, { kind }]) => kind))).toEqual(
		new Set(['tooManyRequests', 'serviceDown', 'unreachable']),
	);
	expect([meaningOf('unreachable').taken, meaningOf('noAnswer').taken]).toEqual(['no', 'unknown']);
});

describe('the table of docs/service.md', () => {
	const page = readFileSync(join(__dirname, '../../../docs/service.md'), 'utf8');
	const [, table = ''] = page.split('## What an answer means');
	const TAKEN: Record<string, Meaning['taken']> = { no: 'no', 'not known': 'unknown' };

	/** The rows that begin with statuses of answers to a create. */
	const rows = table
		.split('\n')
		.map((line) => line.split('|').map((cell) => cell.trim()))
		.filter(([, answers = '', taken]) => /^[3-5]\d\d/.test(answers) && taken)
		.flatMap(([, answers = '', taken = '', concerns = '']) =>
			(answers.match(/\b[3-5]\d\d\b/g) ?? []).map(
				(status) => [Number(status), taken, concerns] as const,
			),
		);

	it('names the statuses', () => {
		expect(rows.map(([status]) => status).sort()).toEqual([
			...[301, 307, 308, 401, 402, 403, 404, 405, 407, 408, 410, 425, 429, 499, 503],
			...[521, 522, 523, 525, 526],
		]);
	});

	it.each(rows)('is right about %d: %s, %s', (status, taken, concerns) => {
		const headers = status === 503 ? asking(7) : {};
		const meaning = classify(status, {}, headers);
		expect([meaning.taken, meaning.scope]).toEqual([TAKEN[taken], concerns.replace('the ', '')]);
	});

	it('names all codes without credits, and no others', () => {
		const [, codes = ''] = /_code without credits_ decides: (.*?), as the whole/.exec(page) ?? [];
		const named = [...codes.matchAll(/`(\w+)`/g)].map(([, code]) => code);
		expect(named.length).toBeGreaterThan(5);
		for (const code of named) expect(classify(400, { code }).kind).toBe('noCredits');
		expect(NO_CREDITS.filter((code) => !named.some((each) => plainName(each!) === code))).toEqual(
			[],
		);
	});

	/** A response to a create in the OpenAPI file, with what the nodes take it for. */
	interface Response {
		'x-taken': string;
		'x-concerns': string;
		headers?: object;
	}
	const description = parse(
		readFileSync(join(__dirname, '../../../docs/service.openapi.yaml'), 'utf8'),
	) as {
		paths: { '/api/generate': { post: { responses: Record<string, { $ref?: string }> } } };
		components: { responses: Record<string, Response> };
	};
	const { responses } = description.paths['/api/generate'].post;
	const described = Object.entries(responses).flatMap(([status, { $ref = '' }]) => {
		const response = description.components.responses[$ref.split('/').at(-1) ?? ''];
		return response ? [[status, response] as const] : [];
	});

	it.each(described)('and the OpenAPI file are right about %s', (status, response) => {
		const isAsked = Number(status) === 503;
		const { taken, scope } = classify(
			status.endsWith('XX') ? Number(status[0]) * 100 + 20 : Number(status),
			{},
			isAsked ? asking(7) : {},
		);
		expect([response['x-taken'], response['x-concerns']]).toEqual([taken, scope]);
	});

	it('names no status of which the OpenAPI file says something else', () => {
		for (const [status] of rows) {
			const range = `${String(status)[0]}XX`;
			const [, response] = described.find(([each]) => each === String(status)) ??
				described.find(([each]) => each === range) ?? ['', undefined];
			const { taken, scope } = classify(status, {}, status === 503 ? asking(7) : {});
			expect([status, response?.['x-taken'], response?.['x-concerns']]).toEqual([
				status,
				taken,
				scope,
			]);
		}
	});
});

describe('an error', () => {
	const errorOf = (...given: Given) => {
		const { kind, said, spoken, status, ...meaning } = classify(...given);
		if (kind === 'answered') throw new Error(`No error: ${said} ${String(spoken)}`);
		return new ServiceError(kind, 'No', { statusCode: status, meaning: { ...meaning, kind } });
	};

	it.each<[boolean, ...Given]>([
		[true, 404],
		[true, 410],
		[true, 404, ''],
		[true, 404, 'Not Found'],
		[true, 200, { code: 404, message: 'No such task' }],
		[false, 404, HTML],
		[false, 405],
		[false, 401],
	])('says that there is no such task (%j): %j', (isNoSuchTask, ...given) => {
		expect(errorOf(...given).isNoSuchTask).toBe(isNoSuchTask);
	});

	it.each<[boolean, ...Given]>([
		[true, 429],
		[true, 429, HTML],
		[true, 503, {}, asking(7)],
		[true, 503, HTML, asking(7)],
		[false, 503],
		[false, 402],
		[true, 429, { error: 'No credits' }],
		[false, 429, { code: 'insufficient_credits' }],
	])('asks to slow down (%j): %j', (asksToSlowDown, ...given) => {
		expect(errorOf(...given).asksToSlowDown).toBe(asksToSlowDown);
	});
});
