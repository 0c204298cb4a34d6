import type { INodeExecutionData } from 'n8n-workflow';

import { deliver, outcome } from '../workflow/webhook';
import { callbackToken } from '../../nodes/MediaGeneration/shared/addresses';
import { type TestNode, TRIGGER_PATH } from '../workflow/engine';
import { IMAGE_MODEL, imageNode, prompts, stage, VIDEO_MODEL } from '../workflow/support';
import { passTime } from '../workflow/time';
import { loadDescription, startRecorder } from './openapi';

const on = stage();
let description: Awaited<ReturnType<typeof loadDescription>>;
let recorder: Awaited<ReturnType<typeof startRecorder>>;
beforeAll(async () => {
	description = await loadDescription();
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

const PICTURE = { data: btoa('not much of a picture'), mimeType: 'image/png' };
const video = (parameters: object) => ({
	parameters: { resource: 'video', prompt: 'Waves', ...parameters },
});
const task = (operation: string, parameters: object = {}) => ({
	parameters: { resource: 'task', operation, ...parameters },
});

describe('what the nodes send, and what the simulated service answers', () => {
	const run = async (
		node: TestNode,
		items?: INodeExecutionData[],
		{ apiKey } = { apiKey: on.service.apiKey },
	) => await on.run(node, items, { credential: { baseUrl: recorder.url, apiKey } });

	const further = '{ "seed": 7, "style": { "tone": "calm" } }';
	const input = '{ "text": "x", "list": [1] }';
	const imageUrl = 'https://media.example.com/1.png';
	const callbackUrl = 'https://n8n.example.com/webhook/7/callback';
	const withCallback = { completion: 'trigger', callbackUrl };

	it.each([
		['an image', imageNode(), prompts('A lighthouse')],
		['further input', imageNode({ additionalInput: further }), prompts('Zażółć 🌊')],
		['a batch', imageNode(), prompts('A', 'B', 'C')],
		['a task that fails', imageNode(), prompts({ prompt: 'A', simulate: { outcome: 'FAILURE' } })],
		['a video from an address', video({ imageUrl, durationSeconds: 3 }), prompts('A')],
		['a file', video({ imageSource: 'binary' }), [{ json: {}, binary: { data: PICTURE } }]],
		['any model', task('create', { model: 'any/model', input }), prompts('A')],
		['a task with a callback', imageNode({}, { parameters: withCallback }), prompts('A')],
	])('agree with the description for %s', async (_what, node, items) => {
		on.service.configure({ callbackLost: true });
		await run(node, items as INodeExecutionData[]);
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
		await run(task('get', { taskId: 'task-1' }), undefined, { apiKey: 'sk-live-another' });
		const refused = ['GET 404', 'GET 401', 'POST 400', 'POST 503', 'POST 429', 'POST 402'];
		expect(said()).toEqual(expect.arrayContaining(refused));
		expect(offences()).toEqual([]);
	});

	it('would not agree if one of them were different', async () => {
		on.service.configure({ createShape: {} });
		await run(imageNode({ timeout: 1 }), prompts('A'));
		on.service.configure({ createShape: undefined, extraFields: { resultUrls: undefined } });
		await run(imageNode(), prompts('A'));
		// A success without links is read again for a while.
		expect([...new Set(offences())]).toEqual([
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

	it.each(['SUCCESS', 'FAILURE'] as const)('on %s, which is the record, agrees', (outcome) => {
		const { taskId, record } = on.service.createTask(IMAGE_MODEL, { prompt: 'A' });
		on.service.complete(taskId, outcome);
		const offences = (state: string) =>
			description.offencesOfRequest(callback({ ...record, state }));
		expect(offences(outcome)).toEqual([]);
		expect(offences('PENDING')).toHaveLength(1);
	});

	it('is answered by the trigger as described', async () => {
		const { apiKey, url: baseUrl } = on.service;
		const credential = { apiKey, baseUrl, token: callbackToken(TRIGGER_PATH, apiKey) };
		const { taskId } = on.service.createTask(IMAGE_MODEL, { prompt: 'A' });
		on.service.complete(taskId, 'FAILURE');
		const simulate = { latencyMs: 60_000 };
		const unfinished = on.service.createTask(IMAGE_MODEL, { prompt: 'A', simulate });
		const answers: Array<{ status?: number; body?: unknown; retryAfter?: string }> = [];
		for (const call of [
			{ body: {} },
			{ body: { taskId }, token: null },
			{ body: { taskId: 'nobody' } },
			{ body: { taskId }, rawBody: Buffer.alloc(1024 ** 2 + 1) },
			{ body: { taskId: unfinished.taskId } },
			{ body: { taskId }, parameters: { events: ['SUCCESS'] } },
		]) {
			answers.push(await passTime(outcome(deliver({ ...credential, ...call }))));
		}
		const { result } = deliver({ body: { taskId }, node: 'another', ...credential });
		answers.push({ status: 200, body: (await passTime(result)).webhookResponse });
		expect(answers.map(({ status }) => status)).toEqual([400, 401, 404, 413, 503, 200, 200]);
		const wrong = answers.flatMap(({ status = 0, body, retryAfter }) => {
			const headers: Record<string, string> = retryAfter ? { 'retry-after': retryAfter } : {};
			const response = { status, headers, body: JSON.stringify(body) };
			return description.offencesOfResponse({ request: callback({ taskId }), response });
		});
		expect(wrong).toEqual([]);
	});
});
