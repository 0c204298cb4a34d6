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
import { read } from '../repository';

const NOW = Date.UTC(2026, 0, 1);

const HTML = '<!doctype html><title>Error</title><h1>Guru Meditation</h1>';
const TEXT = 'upstream connect error or disconnect/reset before headers';
const CLOUDFLARE = { server: 'cloudflare', 'cf-ray': '8f0-FRA' };
const NGINX = { server: 'nginx' };
const SEVEN = { 'retry-after': '7' };
const RESET = { 'ratelimit-reset': '7' };

/** An answer: its status, its body (JSON unless it is a text) and its headers. */
type Given = [status: number, body?: unknown, headers?: Record<string, string>];

const answer = ([statusCode, body = {}, headers = {}]: Given): Answer => ({
	statusCode,
	headers,
	body: typeof body === 'string' ? body : JSON.stringify(body),
});

const classify = (...given: Given) => classifyAnswer(answer(given), NOW);

const limit = (message: string, code = 'rate_limit_exceeded') => ({ error: { code, message } });

/** What each answer means: the table of docs/service.md, with its cases. */
const TABLE: Array<[meaning: string, ...answers: Given[]]> = [
	['answered, service, yes, item', [200], [201, { taskId: 'x' }], [202, ''], [204, '']],
	['answered, service, yes, item', [200, { code: 500, data: null }], [200, '"x"']],
	// A task is a task, whatever else stands beside it.
	['answered, service, yes, item', [200, { code: 402, taskId: 'x' }]],
	['answered, service, yes, item', [200, { status: 404, state: 'PENDING' }]],
	['unexpectedAnswer, stranger, unknown, address, again', [200, HTML], [200, '{"state": "S']],

	// A status in the body of a 200.
	['noCredits, service, no, account', [200, { code: 402, msg: 'Top up' }]],
	['notFound, service, no, address', [200, { code: '404', data: null }]],
	['unauthorized, service, no, key', [200, { statusCode: 401 }]],
	['tooManyRequests, service, no, account, again', [200, { code: 429 }]],
	['serviceDown, service, unknown, item, again', [200, { code: 408 }]],

	['rejected, service, no, item', [400], [409], [422], [423], [400, '']],
	['tooLarge, service, no, item', [413], [413, TEXT], [200, { code: 413 }]],
	['tooLarge, stranger, no, item', [413, HTML]],
	['rejected, service, no, item', [400, 'Bad prompt'], [422, 'Bad seed\n']],
	['rejected, service, no, address', [405], [407], [407, 'Proxy login']],
	['rejected, stranger, no, address', [407, HTML]],
	['rejected, stranger, no, item', [400, HTML], [422, HTML]],
	['unauthorized, service, no, key', [401], [401, ''], [401, 'Who?']],
	['unauthorized, stranger, no, key', [401, HTML]],
	['forbidden, service, no, key', [403], [403, '"Forbidden"'], [403, 'Blocked']],
	['forbidden, stranger, no, key', [403, HTML]],
	['notFound, service, no, address', [404], [410], [404, '']],
	['notFound, service, no, address', [404, 'Not Found'], [410, 'Gone\n']],
	['notFound, stranger, no, address', [404, HTML], [410, HTML]],
	['redirected, service, no, address', [301], [307, HTML], [308, '']],
	['redirected, service, unknown, address', [302], [303, HTML], [300]],

	// Money first: these may cover a task.
	['serviceDown, service, unknown, item, again', [500], [502], [503], [504, ''], [520], [599]],
	['serviceDown, service, unknown, item, again', [408], [425], [499]],
	['serviceDown, stranger, unknown, item, again', [524, HTML], [530, HTML, CLOUDFLARE]],
	['serviceDown, stranger, unknown, item, again', [502, HTML], [520, TEXT], [408, HTML]],
	['serviceDown, stranger, unknown, item, again after 7 s', [503, HTML, SEVEN], [503, TEXT, SEVEN]],
	['serviceDown, stranger, unknown, item, again after 7 s', [425, HTML, SEVEN]],
	['serviceDown, service, unknown, item, again after 7 s', [500, {}, SEVEN], [499, {}, SEVEN]],
	['serviceDown, service, no, account, again after 7 s', [503, {}, SEVEN], [503, '', SEVEN]],
	['serviceDown, service, no, account, again after 7 s', [503, { retry_after: 7 }]],
	// This header says nothing of a service that is down.
	['serviceDown, service, unknown, item, again', [503, {}, RESET]],
	// The gateway was not connected with the service.
	['unreachable, service, no, address, again', [521], [522], [523, ''], [525], [526, {}, NGINX]],
	['unreachable, stranger, no, address, again', [521, HTML, CLOUDFLARE], [522, TEXT], [526, HTML]],
	['unreachable, stranger, no, address, again after 7 s', [521, HTML, SEVEN]],

	['tooManyRequests, service, no, account, again', [429], [429, ''], [429, 'Slow down']],
	['tooManyRequests, stranger, no, account, again', [429, HTML]],
	['tooManyRequests, service, no, account, again after 7 s', [429, {}, SEVEN], [429, {}, RESET]],
	['tooManyRequests, service, no, account, again after 7 s', [429, { error: { retry_after: 7 } }]],
	// Whatever the words say, a limit is a limit.
	[
		'tooManyRequests, service, no, account, again',
		[429, limit('Rate limit reached: 3 per minute. See your plan and billing.')],
		[429, limit('Too many concurrent tasks: quota of 2 running tasks', 'QUOTA_EXCEEDED')],
		[429, limit('The quota per minute is used up', 'limit')],
		[429, { message: 'Your credit balance is too low' }],
		[429, { error: 'Quota exceeded' }],
		[429, 'No credits left'],
	],
	[
		'tooManyRequests, service, no, account, again after 7 s',
		[429, limit('Slow down or upgrade your billing plan', 'limit'), SEVEN],
	],

	// An empty account: the status, or a code of the list, whole.
	['noCredits, service, no, account', [402], [402, '']],
	['noCredits, stranger, no, account', [402, HTML]],
	[
		'noCredits, service, no, account',
		[429, limit('You exceeded your current quota, check your plan', 'insufficient_quota')],
		[400, { error: { type: 'billing_hard_limit_reached' } }],
		[403, { errors: [{ code: 'INSUFFICIENT_BALANCE' }] }],
		[400, { code: 'insufficient_credits', message: 'No' }],
		[404, { error: 'insufficient_funds' }],
		[200, { code: 'InsufficientCredits' }],
	],
	// The code of a task, of an answer that may cover a task, and codes that are not whole.
	['answered, service, yes, item', [200, { code: 'insufficient_credits', taskId: 'x' }]],
	['answered, service, yes, item', [200, { balance: 0, status: 'insufficient_balance' }]],
	['serviceDown, service, unknown, item, again', [500, { code: 'insufficient_credits' }]],
	[
		'rejected, service, no, item',
		[400, { code: 'insufficient_credits_field' }],
		[400, { message: 'insufficient_credits' }],
		[400, { input: { type: 'insufficient_credits' } }],
		[400, { error: 'Bad field: credits' }],
	],
	// The prompt, and not the account.
	[
		'forbidden, service, no, key',
		[403, { error: 'The prompt "a credit card" is not allowed' }],
		[403, { error: "The prompt 'a gymnast on a balance beam' was blocked" }],
		[403, { detail: 'You have run out of credits' }],
	],
];

const CASES = TABLE.flatMap(([meaning, ...answers]) =>
	answers.map((given) => [given, meaning] as const),
);

/** A meaning in words: what it is, who speaks, whether a task was taken, what it is about, and when to try again. */
function wordsOf({ kind, speaker, taken, scope, again, retryAfterMs }: Meaning): string {
	const after = retryAfterMs === undefined ? '' : ` after ${retryAfterMs / 1000} s`;
	return [kind, speaker, taken, scope, ...(again ? [`again${after}`] : [])].join(', ');
}

it.each(CASES)('%j means %s', (given, meaning) => {
	expect(wordsOf(classify(...given))).toBe(meaning);
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
	const sentAgain = CASES.flatMap(([, said]) => /^(\w+).* no,.* again/.exec(said)?.[1] ?? []);
	expect(new Set(sentAgain)).toEqual(new Set(['tooManyRequests', 'serviceDown', 'unreachable']));
	expect([meaningOf('unreachable').taken, meaningOf('noAnswer').taken]).toEqual(['no', 'unknown']);
});

describe('the pages', () => {
	const page = read('docs/service.md');
	const [, table = ''] = page.split('## What an answer means');
	const meaningOfStatus = (status: number) => {
		const { taken, scope } = classify(status, {}, status === 503 ? SEVEN : {});
		return [taken, scope];
	};

	/** The rows of docs/service.md that begin with statuses of answers to a create. */
	const rows = table
		.split('\n')
		.map((line) => line.split('|').map((cell) => cell.trim()))
		.filter(([, answers = '', taken]) => /^[3-5]\d\d/.test(answers) && taken)
		.flatMap(([, answers = '', taken = '', concerns = '']) =>
			(answers.match(/\b[3-5]\d\d\b/g) ?? []).map((status) => [status, taken, concerns] as const),
		);
	const statuses = rows.map(([status]) => status);

	it('name the statuses', () => {
		expect([...statuses].sort().map(Number)).toEqual([
			...[301, 307, 308, 401, 402, 403, 404, 405, 407, 408, 410, 425, 429, 499, 503],
			...[521, 522, 523, 525, 526],
		]);
	});

	it.each(rows)('are right about %s: %s, %s', (status, taken, concerns) => {
		const said = [taken.replace('not known', 'unknown'), concerns.replace('the ', '')];
		expect(meaningOfStatus(Number(status))).toEqual(said);
	});

	it('name all codes without credits, and no others', () => {
		const [, codes = ''] = /_code without credits_ decides: (.*?), as the whole/.exec(page) ?? [];
		const named = [...codes.matchAll(/`(\w+)`/g)].map(([, code = '']) => code);
		expect(named.length).toBeGreaterThan(5);
		for (const code of named) expect(classify(400, { code }).kind).toBe('noCredits');
		expect(NO_CREDITS.filter((code) => !named.map(plainName).includes(code))).toEqual([]);
	});

	const { paths, components } = parse(read('docs/service.openapi.yaml')) as {
		paths: { '/api/generate': { post: { responses: Record<string, { $ref?: string }> } } };
		components: { responses: Record<string, Record<'x-taken' | 'x-concerns', string>> };
	};
	/** The responses to a create in the OpenAPI file, with what the nodes take each for. */
	const { responses } = paths['/api/generate'].post;
	const described = Object.keys(responses).filter((status) => responses[status]?.$ref);

	it.each([...new Set([...statuses, ...described])])('agree in the OpenAPI file: %s', (status) => {
		const { $ref = '' } = responses[status] ?? responses[`${status[0]}XX`] ?? {};
		const response = components.responses[$ref.split('/').at(-1) ?? ''];
		const meaning = meaningOfStatus(Number(status.replace('XX', '20')));
		expect([response?.['x-taken'], response?.['x-concerns']]).toEqual(meaning);
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
		[true, 503, {}, SEVEN],
		[true, 503, HTML, SEVEN],
		[false, 503],
		[false, 402],
		[true, 429, { error: 'No credits' }],
		[false, 429, { code: 'insufficient_credits' }],
	])('asks to slow down (%j): %j', (asksToSlowDown, ...given) => {
		expect(errorOf(...given).asksToSlowDown).toBe(asksToSlowDown);
	});
});
