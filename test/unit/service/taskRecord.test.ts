import { parseTaskRecord, reasonOf } from '../../../nodes/MediaGeneration/service/taskRecord';

const URLS = ['https://media.example.com/1.png', 'https://media.example.com/2.png'];
const parse = (body: unknown) => parseTaskRecord('t', body);

describe('the state of a record', () => {
	it.each([
		['SUCCESS', ['SUCCESS', 'success', 'Success ']],
		['FAILURE', ['FAILURE', 'Failure']],
		['PENDING', ['PENDING', ' pending ']],
		// The specification does not name these.
		['PENDING', ['RUNNING', 'queued', 'PROCESSING', 'SUCCEEDED']],
	])('is %s where it is one of %j', (expected, states) => {
		for (const state of states) expect(parse({ state }).state).toBe(expected);
	});

	it('is looked for in the wrapper too where the outer `state` is empty', () => {
		expect(parse({ state: '', data: { state: 'FAILURE' } }).state).toBe('FAILURE');
	});

	it.each([[{}], [{ state: '' }], [{ state: 1 }], [[]], [null], ['SUCCESS']])(
		'cannot be told from %j, which is an error that names the task',
		(body) => {
			expect(() => parseTaskRecord('task-1', body)).toThrow(
				expect.objectContaining({
					kind: 'unusableRecord',
					message: 'The record of task task-1 has no state',
				}),
			);
		},
	);
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

	it.each(['data', 'task'])(
		'may be wrapped in `%s`, and keeps the id it was asked for',
		(place) => {
			const inner = { taskId: 'other', state: 'SUCCESS', resultUrls: URLS, creditsConsumed: 8 };
			const record = { [place]: inner };
			expect(parse(record)).toEqual({ ...inner, taskId: 't', record });
		},
	);

	it.each<[object]>([
		[{ state: 'SUCCESS', data: { resultUrls: URLS, creditsConsumed: 8 } }],
		[{ resultUrls: URLS, creditsConsumed: 8, data: { state: 'SUCCESS' } }],
		[{ data: { task: { state: 'SUCCESS', resultUrls: URLS, creditsConsumed: 8 } } }],
		[{ task: { state: 'SUCCESS', result_urls: URLS, credits_consumed: 8 } }],
		[{ creditsConsumed: 1, data: { state: 'SUCCESS', resultUrls: URLS, creditsConsumed: 8 } }],
	])('may have its state, its results and its credits in different places: %j', (body) => {
		const found = { state: 'SUCCESS', resultUrls: URLS, creditsConsumed: 8 };
		expect(parse(body)).toEqual({ ...found, taskId: 't', record: body });
	});

	it('has results only where it is a success', () => {
		expect(parse({ state: 'PENDING', resultUrls: URLS })).not.toHaveProperty('resultUrls');
	});

	it.each([
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
	])('has its results read from %s', (_shape, resultUrls, expected) => {
		const task = parseTaskRecord(
			't',
			{ state: 'SUCCESS', resultUrls },
			'https://api.example.com/v1',
		);
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

	it.each<[object, string | undefined]>([
		[{ error: 'Unsafe prompt' }, 'Unsafe prompt'],
		[{ failureReason: 'Unsafe prompt' }, 'Unsafe prompt'],
		...['failMsg', 'fail_reason', 'errorMsg', 'msg', 'detail'].map((name): [object, string] => [
			{ [name]: 'Unsafe prompt', message: 'ok' },
			'Unsafe prompt',
		]),
		[{ code: 200, message: 'success', error: 'Unsafe prompt' }, 'Unsafe prompt'],
		[{ message: 'ok' }, undefined],
		[{}, undefined],
		// What the user sent.
		[{ input: { message: 'Say hello' }, data: { error: 'no' } }, undefined],
		[{ title: 'A harbour', description: 'At dawn' }, undefined],
	])('that is a failure has its reason found in %j: %s', (fields, reason) => {
		expect(parse({ state: 'FAILURE', ...fields })).toHaveProperty('reason', reason);
	});

	it('has its reason beside the wrapper, too', () => {
		const body = { message: 'success', error: 'Unsafe prompt', data: { state: 'FAILURE' } };
		expect(parse(body)).toHaveProperty('reason', 'Unsafe prompt');
	});

	it('says why it has no results, or is quoted', () => {
		expect(reasonOf({ state: 'SUCCESS', message: 'ok', detail: 'All filtered' })).toBe(
			'All filtered',
		);
		expect(reasonOf({ state: 'SUCCESS', images: 0 })).toBe('{"state":"SUCCESS","images":0}');
		expect(reasonOf({ state: 'SUCCESS', text: 'x'.repeat(900) })).toHaveLength(300);
	});
});
