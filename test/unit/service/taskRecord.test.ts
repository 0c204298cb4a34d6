import { SPECIFICATION } from '../../../nodes/MediaGeneration/service/services';
import {
	parseTaskRecord,
	reasonOf,
	withoutFiles,
} from '../../../nodes/MediaGeneration/service/taskRecord';

const URL = 'https://media.example.com/1.png';
const URLS = [URL, 'https://media.example.com/2.png'];
const FOUND = { state: 'SUCCESS', resultUrls: URLS, creditsConsumed: 8 } as const;
const parse = (body: unknown) => parseTaskRecord('t', body);
/** A picture of some pixels, which stands for the result while that is loaded. */
const BLUR = 'data:image/png;base64,AAAA';

const JPEG = `/9j/4AAQ${'SkZJRgABAQAAAQABAAD/2wBD'.repeat(4000)}`;
const BYTES = 'data:application/octet-stream;base64,';
const LINES = `${'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9Q'}\r\nDwADhgGAWjR9awAAAABJRU5ErkJggg==`;

describe('the state of a record', () => {
	it.each([
		[{ status: 'success', data: { id: 't', status: 'processing' } }, 'PENDING'],
		[{ status: 'success', data: { status: 'processing' } }, 'PENDING'],
		[{ id: 't', status: 'succeeded', output: { status: 'running' } }, 'SUCCESS'],
		[{ status: 'ok', result: { task_id: 't', status: 'failed' } }, 'FAILURE'],
	])('is that of the layer that names the task, or holds it: %j', (body, state) => {
		const service = { ...SPECIFICATION, state: 'status' };
		expect(parseTaskRecord('t', body, undefined, service).state).toBe(state);
	});

	it.each([
		['SUCCESS', ['SUCCESS', 'success', 'Success ', 'SUCCEEDED', 'succeed', 'complete']],
		['SUCCESS', ['completed', 'finished', 'done', 'Ready']],
		['FAILURE', ['FAILURE', 'Failure', 'fail', 'FAILED', 'error', 'canceled', 'cancelled']],
		['FAILURE', ['cancel', 'aborted', 'expired', 'rejected', 'moderated', 'Content Moderated']],
		['PENDING', ['PENDING', ' pending ', 'RUNNING', 'queued', 'PROCESSING', 'dreaming']],
		['PENDING', ['not ready', 'completing', 'IN_QUEUE', 'Task not found', 'unsuccessful']],
	])('is %s where it is one of %j', (expected, states) => {
		for (const state of states) expect(parse({ state }).state).toBe(expected);
	});

	it('is looked for in the wrapper too where the outer `state` is empty', () => {
		expect(parse({ state: '', data: { state: 'FAILURE' } }).state).toBe('FAILURE');
	});

	it.each([[{}], [{ state: '' }], [{ state: 1 }], [[]], [null], ['SUCCESS']])(
		'cannot be told from %j, which is an error',
		(body) => {
			const error = { kind: 'unusableRecord', message: 'The task record has no state' };
			expect(() => parse(body)).toThrow(expect.objectContaining(error));
		},
	);
});

describe('a record without a state', () => {
	const FLAGGED = 'flagged by the content policy';
	const said = `: ${FLAGGED}`;

	it.each<[unknown, string, isRefusal: boolean]>([
		[
			{ code: 400, msg: FLAGGED, data: { taskId: 't', successFlag: 3, errorMessage: 'x' } },
			said,
			true,
		],
		[{ code: 200, msg: 'success', data: { errorCode: 400, errorMessage: FLAGGED } }, said, true],
		[{ data: { task: { errorCode: 'POLICY', error: FLAGGED } } }, said, true],
		[[{ status: 422, detail: FLAGGED }], said, true],
		[{ error: { code: 'policy', message: FLAGGED } }, said, true],
		[{ code: 200, msg: FLAGGED }, said, false],
		[{ data: { message: FLAGGED, errorCode: 0 } }, said, false],
		[{ message: FLAGGED, errorCode: '' }, said, false],
		[{ code: 500, data: null }, '', false],
		[{ input: { error: FLAGGED } }, '', false],
	])('(%j) says why%s, and whether there will be none: %j', (body, why, isRefusal) => {
		const error = { message: `The task record has no state${why}`, isRefusal };
		expect(() => parse(body)).toThrow(expect.objectContaining(error));
	});
});

it('a task loses its files, also in base64, and keeps all else', () => {
	const resultUrls = [`data:image/png;base64,${JPEG}`, URLS[0] ?? ''];
	const task = parse({ state: 'SUCCESS', resultUrls: [{ b64_json: JPEG }, URLS[0]], seed: 7 });
	expect(task).toHaveProperty('resultUrls', [expect.stringContaining(JPEG), resultUrls[1]]);
	const small = withoutFiles(task);
	expect(JSON.stringify(small).length).toBeLessThan(1000);
	expect(small).toMatchObject({ taskId: 't', state: 'SUCCESS', record: { seed: 7 } });
	expect(small).toHaveProperty('resultUrls', [expect.stringMatching(/^data:.{59}… \(/), URLS[0]]);
});

describe('a record', () => {
	it('is handed on as it was received, with whatever else it holds', () => {
		const body = { state: 'SUCCESS', resultUrls: URLS, prompt: { text: 'a' }, extra: [1] };
		expect(parse(body).record).toEqual(body);
	});

	it.each(['resultUrls', 'result_urls'])(
		'loses long data URIs that were sent along, and keeps those of %s',
		(name) => {
			const picture = `data:image/png;base64,${'A'.repeat(9000)}`;
			const task = parse({
				data: { state: 'SUCCESS', [name]: [picture], input: { frame: picture } },
			});
			expect(task).toMatchObject({ resultUrls: [picture] });
			expect(JSON.stringify(task.record)).toContain('(9022 characters)');
			expect(parse(task.record)).toMatchObject({ resultUrls: [picture] });
		},
	);

	it('may be wrapped, and keeps the id it was asked for', () => {
		const inner = { taskId: 'other', ...FOUND };
		for (const record of [{ data: inner }, { task: inner }]) {
			expect(parse(record)).toEqual({ ...inner, taskId: 't', record });
		}
	});

	const { state, ...rest } = FOUND;
	it.each<[unknown]>([
		[[FOUND]],
		[{ data: [FOUND] }],
		[{ result: FOUND }],
		[{ output: { task: { state, resultUrls: URLS, credits_consumed: 8 } } }],
		[{ generation: { state, output: { resultUrls: URLS } }, creditsConsumed: 8 }],
		[{ data: JSON.stringify(FOUND) }],
		[{ input: { state: 'FAILURE' }, tasks: [FOUND] }],
		[{ state, data: rest }],
		[{ ...rest, data: { state } }],
		[{ data: { task: FOUND } }],
		[{ task: { state, result_urls: URLS, credits_consumed: 8 } }],
		[{ creditsConsumed: 1, data: FOUND }],
	])('may have its state, its results and its credits in different places: %j', (body) => {
		const [record] = [body].flat();
		expect(parse(body)).toEqual({ ...FOUND, taskId: 't', record });
	});

	it('has results only where it is a success', () => {
		expect(parse({ state: 'PENDING', resultUrls: URLS })).not.toHaveProperty('resultUrls');
	});

	type Row = [shape: string, resultUrls: unknown, expected: unknown[]];
	it.each<Row>([
		['nothing', undefined, []],
		['a single string', URLS[0], [URLS[0]]],
		['an empty string', '', []],
		['a list with odd entries', [URLS[0], null, 7, '', { id: 'x' }, URLS[1]], URLS],
		['a list of objects', [{ url: URLS[0], width: 1024 }, { url: URLS[1] }], URLS],
		['an object', { url: URLS[0] }, [URLS[0]]],
		['an object without a URL', { id: 'x' }, []],
		['a list with an empty text', [''], []],
		['null', null, []],
		['objects with other names', [{ image_url: URLS[0] }, { href: URLS[1] }], URLS],
		['an object of links', { first: URLS[0], second: URLS[1], thumbnail: 'https://m/t' }, URLS],
		['the JSON text of a list', JSON.stringify(URLS), URLS],
		['the JSON text of an object', JSON.stringify({ url: URLS[0] }), [URLS[0]]],
		['a text with commas', URLS.join(', '), URLS],
		['a text with line breaks', `${URLS.join('\n')}\n`, URLS],
		['a link with a comma', 'https://m/a,b.png', ['https://m/a,b.png']],
		['a data URI', 'data:image/png;base64,AAAA', ['data:image/png;base64,AAAA']],
		['a link without a host', '/files/1.png', ['https://api.example.com/files/1.png']],
		['a path', ['files/1.png?x=1'], ['https://api.example.com/files/1.png?x=1']],
		['words', ['none', 'not ready', 'pending', 'N/A'], []],
		['a link that nobody can fetch', ['s3://bucket/1.png', 'https://'], []],
		...[
			{ mediaUrl: URLS[0], contentType: 'image/png', fileName: 'cat.png' },
			{ url: URLS[0], mime_type: 'image/png' },
			{ fileUrl: URLS[0], model: 'vendor/model-2.pro', name: 'a/cat.png' },
			{ image: URLS[0], type: 'image/png', name: '/tmp/cat.png', prompt: URLS[1] },
			{ resultLink: URLS[0], page: URLS[1] },
			{ contentType: 'image/png', file: { name: 'cat.png', location: URLS[0] } },
		].map((entry): Row => [
			`an object with more than a link (${Object.keys(entry).join()})`,
			[entry],
			[URL],
		]),
		['a media type', ['image/png', 'application/vnd.oasis.text'], []],
		['the name of a file', ['cat.png'], []],
		['a model', 'provider/model-2', []],
		['a host without a scheme', ['m.example.com/1.png'], ['https://m.example.com/1.png']],
		['a host with slashes before it', ['//m.example.com/1'], ['https://m.example.com/1']],
		['a path in an object', [{ path: '/files/1' }], ['https://api.example.com/files/1']],
		['several links in an object', [{ smallUrl: URLS[0], largeUrl: URLS[1] }], URLS],
		['base64', [JPEG], [BYTES + JPEG]],
		['base64 in lines', LINES, [BYTES + LINES]],
		['base64 in an object', { image: JPEG }, [BYTES + JPEG]],
		...['b64_json', 'base64', 'image_base64', 'imageBase64', 'b64'].map((name): Row => {
			return [name, [{ [name]: 'AAAA', mime_type: 'image/webp' }], ['data:image/webp;base64,AAAA']];
		}),
		['b64_json without a file', [{ b64_json: null }, { b64_json: 'not there' }], []],
		['a link beside base64', [{ url: URLS[0], b64_json: JPEG }], [URLS[0]]],
		...['url', 'blurDataURL', 'b64_json', 'placeholder'].map((name): Row => {
			const links = [{ image_url: URLS[0] }, { image: URLS[1] }];
			return [`a blur in ${name}`, links.map((link) => ({ [name]: BLUR, ...link })), URLS];
		}),
		['base64 beside an empty link', [{ url: '', b64_json: 'AAAA' }], [`${BYTES}AAAA`]],
		['a text of 100,000 characters', [`https://m/${'x'.repeat(100_000)}`, 'x'.repeat(1e5)], []],
	])('has its results read from %s', (_shape, resultUrls, expected) => {
		const record = { state: 'SUCCESS', resultUrls };
		const task = parseTaskRecord('t', record, 'https://api.example.com/v1');
		expect(task).toHaveProperty('resultUrls', expected);
	});

	it('has no results of links without a host where the address of the service is not known', () => {
		expect(parse({ state: 'SUCCESS', resultUrls: ['/1.png'] })).toHaveProperty('resultUrls', []);
	});

	it('has credits that are a number, or null where it is none', () => {
		const credits = (creditsConsumed: unknown) =>
			parse({ state: 'SUCCESS', creditsConsumed }).creditsConsumed;
		expect([8, 0, 0.5, '8', ' 0.25 '].map(credits)).toEqual([8, 0, 0.5, 8, 0.25]);
		const none = ['eight', '', null, undefined, true, Infinity];
		expect(none.map(credits)).toEqual(none.map(() => null));
	});

	it('says why it has no results, or is quoted', () => {
		const filtered = { state: 'SUCCESS', message: 'ok', detail: 'All filtered' };
		expect(reasonOf(filtered)).toBe('All filtered');
		expect(reasonOf({ state: 'SUCCESS', images: 0 })).toBe('{"state":"SUCCESS","images":0}');
		const long = reasonOf({ state: 'SUCCESS', text: 'x'.repeat(900) });
		expect(long).toMatch(/^.{300}… \(929 characters\)$/);
	});
});

const UNSAFE = 'Unsafe prompt';
it.each<[object, reason: string | undefined]>([
	[{ error: UNSAFE }, UNSAFE],
	[{ failureReason: UNSAFE }, UNSAFE],
	...['failMsg', 'fail_reason', 'errorMsg', 'msg', 'detail'].map((name): [object, string] => [
		{ [name]: UNSAFE, message: 'ok' },
		UNSAFE,
	]),
	[{ code: 200, message: 'success', error: UNSAFE }, UNSAFE],
	[{ message: 'success', error: UNSAFE, data: {} }, UNSAFE],
	// Beside the state, and not the word of the envelope.
	[{ code: 0, message: 'SUCCEED', data: { task_status_msg: UNSAFE } }, UNSAFE],
	[{ msg: 'success', data: { failedReason: { node: 'K', exception_message: UNSAFE } } }, UNSAFE],
	// Words and not the code, at any depth.
	[{ failure: UNSAFE, failureCode: 'SAFETY' }, UNSAFE],
	[{ base_resp: { status_code: 1026, status_msg: UNSAFE } }, UNSAFE],
	[{ details: { 'Moderation Reasons': [UNSAFE] } }, UNSAFE],
	[{ status_message: UNSAFE }, UNSAFE],
	[{ err_code: 'AuditSubmitIllegal' }, 'AuditSubmitIllegal'],
	[{ message: 'ok' }, undefined],
	[{}, undefined],
	// What the user sent.
	[{ input: { message: 'Say hello' }, data: { prompt: 'no' } }, undefined],
	[{ title: 'A harbour', description: 'At dawn' }, undefined],
	[{ errors: { duration: ['must be 5 or 10'] } }, undefined],
	[{ failureDetails: { category: 'x', text: 'Violence' } }, undefined],
	[{ failedAt: '2026-11-28T19:00:00Z', error_count: '3' }, undefined],
])('the reason of a failure is found in %j: %s', (fields, reason) => {
	const state = 'FAILURE';
	const body =
		'data' in fields
			? { ...fields, data: { ...(fields.data as object), state } }
			: { ...fields, state };
	expect(parse(body)).toHaveProperty('reason', reason);
});

it.each([
	['Content Moderated', 'Content Moderated'],
	['expired', 'expired'],
	['failed', undefined],
	['Error', undefined],
])('the word %j of a state says why: %s', (state, reason) => {
	expect(parse({ state })).toMatchObject({ state: 'FAILURE', reason });
});
