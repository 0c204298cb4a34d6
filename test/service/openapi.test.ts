import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';

import { deliver, outcome } from '../unit/callback/webhook';
import { callbackToken } from '../../nodes/MediaGeneration/callback/callbackToken';
import { TRIGGER_PATH } from '../workflow/engine';
import { imageNode, prompts, stage, VIDEO_MODEL } from '../workflow/support';
import { passTime } from '../workflow/time';
import { Description, DESCRIPTION_FILE, loadDescription, startRecorder } from './openapi';
import { Client, IMAGE_MODEL } from './support';

const description = new Description();

describe('the description', () => {
	it('is a valid OpenAPI 3.1 document', async () => {
		const tool = join(
			dirname(require.resolve('@seriousme/openapi-schema-validator/package.json')),
			'bin/validate-api-cli.js',
		);
		const { stdout } = await promisify(execFile)(process.execPath, [tool, DESCRIPTION_FILE]);
		expect(JSON.parse(stdout)).toEqual({ valid: true });
		expect(readFileSync(DESCRIPTION_FILE, 'utf8')).toMatch(/^openapi: 3\.1\./);
	});

	it.each([
		['a type that does not exist', 'type: number', 'type: figure'],
		['a reference that leads nowhere', 'schemas/TaskRecord', 'schemas/TaskRecords'],
	])('is not accepted with %s', (_what, right, wrong) => {
		const text = readFileSync(DESCRIPTION_FILE, 'utf8');
		expect(text).toContain(right);
		expect(() => new Description(loadDescription(text.replace(right, wrong)))).toThrow();
	});
});

const on = stage();
let recorder: Awaited<ReturnType<typeof startRecorder>>;

beforeAll(async () => {
	recorder = await startRecorder(() => on.service.url);
});
afterEach(() => {
	recorder.exchanges.length = 0;
});
afterAll(async () => await recorder.close());

/** Everything of the recorded exchanges that is not as described, on both sides. */
const offences = () =>
	recorder.exchanges.flatMap((exchange) => [
		...description.offencesOfRequest(exchange.request),
		...description.offencesOfResponse(exchange),
	]);
const said = () =>
	recorder.exchanges.map(({ request, response }) => `${request.method} ${response.status}`);

const PICTURE = {
	data: Buffer.from('not much of a picture').toString('base64'),
	mimeType: 'image/png',
};
const video = (parameters: object) => ({
	parameters: { resource: 'video', prompt: 'Waves', ...parameters },
});
const task = (operation: string, parameters: object = {}) => ({
	parameters: { resource: 'task', operation, ...parameters },
});

describe('what the nodes send, and what the simulated service answers', () => {
	const run = async (...[node, items]: Parameters<typeof on.run>) => {
		const credential = { baseUrl: recorder.url, apiKey: on.service.apiKey };
		return await on.run(node, items, { credential });
	};

	it.each([
		['an image', imageNode(), prompts('A lighthouse')],
		[
			'an image with further input',
			imageNode({ additionalInput: '{ "seed": 7, "style": { "tone": "calm" } }' }),
			prompts('Zażółć 🌊'),
		],
		['a batch', imageNode(), prompts('A', 'B', 'C')],
		['a task that fails', imageNode(), prompts({ prompt: 'A', simulate: { outcome: 'FAILURE' } })],
		[
			'a video from an address',
			video({ imageUrl: 'https://media.example.com/1.png', durationSeconds: 3 }),
			prompts('A'),
		],
		[
			'a video from a file',
			video({ imageSource: 'binary' }),
			[{ json: {}, binary: { data: PICTURE } }],
		],
		[
			'any model',
			task('create', { model: 'any/model', input: '{ "text": "x", "list": [1] }' }),
			prompts('A'),
		],
		[
			'a task with a callback',
			imageNode(
				{},
				{
					parameters: {
						completion: 'trigger',
						callbackUrl: 'https://n8n.example.com/webhook/7/callback',
					},
				},
			),
			prompts('A'),
		],
	])('agree with the description for %s', async (_what, node, items) => {
		on.service.configure({ callbackLost: true });
		await run(node, items as Parameters<typeof on.run>[1]);
		expect(said()).toContain('POST 200');
		expect(offences()).toEqual([]);
		expect(recorder.exchanges.map(({ request }) => request.headers.authorization)).toEqual(
			recorder.exchanges.map(() => `Bearer ${on.service.apiKey}`),
		);
	});

	it('agree for reading, waiting and the credits', async () => {
		const { taskId } = on.service.createTask(VIDEO_MODEL, { prompt: 'A' });
		on.service.createTask(IMAGE_MODEL, { prompt: 'unfinished', simulate: { latencyMs: 60_000 } });
		for (const id of on.taskIds) await run(task('get', { taskId: id }));
		await run(task('wait', { taskId }));
		await run({ type: 'mediaGenerationCredits', parameters: {} });
		expect(new Set(said())).toEqual(new Set(['GET 200']));
		expect(recorder.exchanges.length).toBeGreaterThanOrEqual(4);
		expect(offences()).toEqual([]);
	});

	it('agree for whatever the service refuses', async () => {
		await run(task('get', { taskId: 'task ü/unknown' }));
		on.service.configure({ createStatus: { status: 400, times: 1 } });
		await run(imageNode(), prompts('A'));
		on.service.configure({ createStatus: { status: 503, times: 1, retryAfter: 1 } });
		await run(imageNode(), prompts('A'));
		on.service.configure({ concurrencyLimit: { limit: 1, retryAfter: 1 }, latencyMs: 1_000 });
		await run(imageNode(), prompts('A', 'B'));
		on.service.configure({ concurrencyLimit: 10 });
		const dear = { prompt: 'A', duration: 100_000 };
		await run(task('create', { model: VIDEO_MODEL, input: JSON.stringify(dear) }));
		on.service.rotateApiKey('sk-live-another');
		await run(task('get', { taskId: 'task-1' }));
		on.service.rotateApiKey('sk-live-simulated-service-key');
		expect(said()).toEqual(
			expect.arrayContaining(['GET 404', 'POST 400', 'POST 503', 'POST 429', 'POST 402']),
		);
		expect(offences()).toEqual([]);
	});

	it('would not agree if one of them were different', async () => {
		on.service.configure({ createShape: 'id' });
		await run(imageNode({ timeout: 1 }), prompts('A'));
		on.service.configure({ createShape: 'flat', omitResultUrls: true });
		await run(imageNode(), prompts('A'));
		expect(offences()).toEqual([
			expect.stringContaining("must have required property 'taskId'"),
			expect.stringContaining("must have required property 'resultUrls'"),
			expect.stringContaining('must match "then" schema'),
		]);
		const [{ request } = { request: undefined }] = recorder.exchanges;
		const more = { ...request!, body: JSON.stringify({ model: 'a/b', input: {}, key: 1 }) };
		expect(description.offencesOfRequest(more)).toEqual([
			expect.stringContaining('must NOT have additional properties'),
		]);
	});
});

describe('the callback', () => {
	const callback = (body: unknown) => ({
		method: 'POST',
		path: '/callback',
		headers: { 'content-type': 'application/json' },
		body: JSON.stringify(body),
	});

	it.each(['SUCCESS', 'FAILURE'] as const)(
		'that the service sends on %s agrees',
		async (outcome) => {
			const { taskId } = on.service.createTask(IMAGE_MODEL, { prompt: 'A' });
			on.service.complete(taskId, outcome);
			const record = await new Client(on.service).read(taskId);
			expect(description.offencesOfRequest(callback(record))).toEqual([]);
			expect(description.offencesOfRequest(callback({ ...record, state: 'PENDING' }))).toHaveLength(
				1,
			);
		},
	);

	const answerTo = async (callback: Parameters<typeof deliver>[0]) =>
		await passTime(outcome(deliver(callback)));

	it('is answered by the trigger as described', async () => {
		const token = callbackToken(TRIGGER_PATH, on.service.apiKey);
		const credential = { apiKey: on.service.apiKey, baseUrl: on.service.url, token };
		const { taskId } = on.service.createTask(IMAGE_MODEL, { prompt: 'A' });
		const unfinished = on.service.createTask(IMAGE_MODEL, {
			prompt: 'A',
			simulate: { latencyMs: 60_000 },
		}).taskId;
		on.service.complete(taskId, 'FAILURE');
		const answers = [
			await answerTo({ body: {}, ...credential }),
			await answerTo({ body: { taskId }, ...credential, token: null }),
			await answerTo({ body: { taskId: 'nobody' }, ...credential }),
			await answerTo({ body: { taskId }, rawBody: Buffer.alloc(1024 ** 2 + 1), ...credential }),
			await answerTo({ body: { taskId: unfinished }, ...credential }),
			await answerTo({ body: { taskId }, ...credential, parameters: { events: ['SUCCESS'] } }),
		];
		const accepted = await passTime(
			deliver({ body: { taskId }, node: 'another', ...credential }).result,
		);
		const all = [
			...answers,
			{ status: 200, body: accepted.webhookResponse, retryAfter: undefined },
		];
		expect(all.map((answer) => ('status' in answer ? answer.status : 0))).toEqual([
			400, 401, 404, 413, 503, 200, 200,
		]);
		const wrong = all.flatMap((answer) => {
			if (!('status' in answer)) return ['started'];
			const { status = 0, body, retryAfter } = answer;
			const headers: Record<string, string> =
				retryAfter === undefined ? {} : { 'retry-after': retryAfter };
			const response = { status, headers, body: JSON.stringify(body) };
			return description.offencesOfResponse({ request: callback({ taskId }), response });
		});
		expect(wrong).toEqual([]);
	});
});
