import { WebhookContext } from 'n8n-core';
import {
	type IDataObject,
	type INodeExecutionData,
	type IWebhookData,
	createRunExecutionData,
} from 'n8n-workflow';
import nock from '../../nock';

import { callbackToken } from '../../../nodes/MediaGeneration/callback/callbackToken';
import { admitResume, newRuns } from '../../../nodes/MediaGeneration/suspend/resumeCallback';
import { pendingItem } from '../../../nodes/MediaGeneration/suspend/suspension';
import { MediaGeneration } from '../../../nodes/MediaGeneration/MediaGeneration.node';
import { systemClock } from '../../../nodes/MediaGeneration/shared/clock';
import { additionalData, API_KEY, buildWorkflow, type Express } from '../../workflow/engine';
import { FakeResponse, outcome, SERVICE } from '../callback/webhook';

const OWN = 'http://127.0.0.1:5678';
const PUBLIC = 'https://n8n.test';
const CHECKER_PATH = '/webhook-waiting/13/callback';

const waiting = (taskId: string, itemIndex = 0) =>
	pendingItem({ taskId, state: 'PENDING', record: { taskId } }, itemIndex);

interface Given {
	stored?: INodeExecutionData[];
	taskId?: string;
	token?: string | null;
	/** What the node noted when it was suspended; null where it noted nothing. */
	check?: IDataObject | null;
	runs?: ReturnType<typeof newRuns>;
	/** Whether n8n's expressions, which tell what is stored, do not work. */
	isUnreadable?: boolean;
}

/** Delivers a callback to a suspended execution as n8n hands it on. */
function resume({
	stored = [waiting('task-1')],
	taskId = 'task-1',
	token = callbackToken('/webhook-waiting/12/callback', API_KEY),
	check = { version: 1, of: '12', url: `${PUBLIC}${CHECKER_PATH}?signature=of-n8n` },
	runs = newRuns(systemClock),
	isUnreadable = false,
}: Given = {}) {
	const credential = { baseUrl: SERVICE, apiKey: API_KEY };
	const { workflow, tested } = buildWorkflow({ node: {}, credential });
	const response = new FakeResponse();
	const request = {
		body: { taskId },
		headers: {},
		query: token === null ? {} : { signature: 'of-n8n', token },
		params: {},
		originalUrl: '/webhook-waiting/12/callback?signature=of-n8n&token=…',
		rawBody: Buffer.from('{}'),
		socket: { localAddress: '::ffff:127.0.0.1', localPort: 5678 },
	};
	const data = {
		...additionalData(credential, 'webhook'),
		executionId: '12',
		httpRequest: request as unknown as Express['httpRequest'],
		httpResponse: response as unknown as Express['httpResponse'],
	};
	const [webhookDescription] = new MediaGeneration().description.webhooks ?? [];
	const webhookData = { webhookDescription } as unknown as IWebhookData;
	const run = createRunExecutionData({
		executionData: {
			contextData: check === null ? {} : { [`node:${tested.name}`]: { check } },
			nodeExecutionStack: [{ node: tested, data: { main: [stored] }, source: null }],
		},
	});
	const context = new WebhookContext(workflow, tested, data, 'webhook', webhookData, [], run);
	const warned = jest.spyOn(context.logger, 'warn');
	if (isUnreadable) {
		jest.spyOn(context, 'evaluateExpression').mockImplementation(() => {
			throw new Error('Isolate was disposed during execution due to memory limit');
		});
	}
	return { result: admitResume(context, runs), response, warned };
}

/** The service, with the states of tasks. */
const states = (tasks: Record<string, string>) => {
	for (const [taskId, state] of Object.entries(tasks)) {
		nock(SERVICE).get(`/api/generate/${taskId}`).reply(200, { taskId, state });
	}
};

/** The address at which the sub-execution is told to check. */
const checkerAt = (origin: string) =>
	nock(origin)
		.post(CHECKER_PATH, { taskId: 'task-1' })
		.query({ signature: 'of-n8n', token: callbackToken(CHECKER_PATH, API_KEY) });

describe('a callback to a suspended run', () => {
	it('has the sub-execution check at once, by the socket that it came in at, and resumes nothing', async () => {
		const told = checkerAt(OWN).reply(200, {});
		expect(await outcome(resume())).toMatchObject({
			status: 200,
			body: { accepted: true, resumed: true },
		});
		expect(told.isDone()).toBe(true);
	});

	it('goes by the public address where the socket does not take it', async () => {
		checkerAt(OWN).replyWithError('wrong version number');
		const told = checkerAt(PUBLIC).reply(200, {});
		expect(await outcome(resume())).toMatchObject({ status: 200, body: { resumed: true } });
		expect(told.isDone()).toBe(true);
	});

	it('costs a while and not the result where the sub-execution cannot be told', async () => {
		checkerAt(OWN).reply(409, {});
		checkerAt(PUBLIC).reply(404, {});
		expect(await outcome(resume())).toMatchObject({
			status: 200,
			body: { accepted: true, resumed: false },
		});
	});

	it('tells nobody where the address of the sub-execution is not known', async () => {
		const check = { version: 1, of: '12', url: '' };
		expect(await outcome(resume({ check }))).toMatchObject({
			status: 200,
			body: { resumed: false },
		});
	});

	it('waits for the others', async () => {
		states({ 'task-2': 'PENDING' });
		const stored = [waiting('task-1'), waiting('task-2', 1)];
		expect(await outcome(resume({ stored }))).toMatchObject({
			status: 200,
			body: { accepted: true, resumed: false },
		});
	});

	it('makes up for those that were lost', async () => {
		states({ 'task-2': 'SUCCESS' });
		const told = checkerAt(OWN).reply(200, {});
		const stored = [waiting('task-1'), waiting('task-2', 1)];
		await outcome(resume({ stored }));
		expect(told.isDone()).toBe(true);
	});

	it('is to come again where another task cannot be read', async () => {
		nock(SERVICE).get('/api/generate/task-2').reply(500, {});
		const stored = [waiting('task-1'), waiting('task-2', 1)];
		expect(await outcome(resume({ stored }))).toMatchObject({ status: 503 });
	});

	it('is to come again where n8n cannot tell what is stored: what is thrown would resume the run with nothing', async () => {
		expect(await outcome(resume({ isUnreadable: true }))).toMatchObject({
			status: 503,
			retryAfter: '5',
		});
	});

	it('is to come again where a newer version of this package suspended the run', async () => {
		const call = resume({ check: { version: 2, of: '12', url: '' } });
		expect(await outcome(call)).toMatchObject({ status: 503, retryAfter: '5' });
		expect(call.warned).toHaveBeenCalledWith(
			expect.stringContaining('another version of this package'),
		);
	});

	it("resumes nothing where a failed item's input had a field of its own named `check`", async () => {
		states({ 'task-1': 'PENDING' });
		const failed = { json: { check: { model: 'Submariner' }, error: 'The prompt is empty' } };
		expect(await outcome(resume({ stored: [failed, waiting('task-1', 1)] }))).toMatchObject({
			status: 200,
			body: { accepted: true },
		});
	});

	it('of a task that it does not wait for is refused', async () => {
		expect(await outcome(resume({ taskId: 'task-9' }))).toMatchObject({ status: 404 });
	});

	it.each([null, '0'.repeat(64)])('without its token (%s) is refused', async (token) => {
		expect(await outcome(resume({ token }))).toMatchObject({ status: 401 });
	});

	// As its retry has it, too: what the first execution noted is not meant for the retry.
	it.each([null, { version: 1, of: '7', url: `${PUBLIC}${CHECKER_PATH}` }])(
		'is refused where nothing checks for this execution (%j)',
		async (check) => {
			expect(await outcome(resume({ check }))).toMatchObject({ status: 404 });
		},
	);

	it.each<[string, IDataObject]>([
		['its time is up', { taskId: 'task-1', timedOut: true, error: 'Not finished' }],
		['it has failed', { taskId: 'task-1', state: 'FAILURE', error: 'Failed' }],
		['it is finished', { taskId: 'task-1', state: 'SUCCESS' }],
	])('of a task is refused where %s: nothing waits for it', async (_what, json) => {
		const stored = [{ json }, waiting('task-2', 1)];
		expect(await outcome(resume({ stored }))).toMatchObject({ status: 404 });
	});
});

describe('a call of the sub-execution', () => {
	const state = { version: 1, purpose: 'results', items: [] };

	it('has it check, with what it knows', async () => {
		const { result } = resume({ stored: [{ json: { check: state } }] });
		expect((await result).workflowData).toEqual([[{ json: { check: { ...state, woken: true } } }]]);
	});

	it('needs the token, too', async () => {
		const call = resume({ stored: [{ json: { check: state } }], token: null });
		expect(await outcome(call)).toMatchObject({ status: 401 });
	});
});
