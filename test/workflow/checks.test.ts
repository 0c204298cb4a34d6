import type { IWorkflowExecuteAdditionalData } from 'n8n-workflow';

import {
	type AwaitedCallback,
	WAIT_PARAMETERS,
	waitItems,
} from '../../nodes/MediaGeneration/callback/delivery';
import { claimStart } from '../../nodes/MediaGeneration/callback/ledger';
import { callbackToken } from '../../nodes/MediaGeneration/shared/addresses';
import { HOUR } from '../durations';
import nock from '../nock';
import type { Settings } from '../service/settings';
import { EPOCH } from '../virtualTime';
import { executeContext, startWorkflow, type TestWorkflow, TRIGGER, TRIGGER_PATH } from './engine';
import { N8N_URL as N8N } from './host';
import { WorkflowN8n } from './n8n/workflowN8n';
import {
	field,
	IMAGE_MODEL,
	imageNode,
	item,
	jsonOf,
	keepsGoing,
	MINUTE,
	prompts,
	SECOND,
	stage,
	text,
	threeTries,
} from './support';
import { passTime, settle, time } from './time';

/** What makes up for callbacks that do not come: the check that a run leaves behind, and Repeat Callback. */

const on = stage();
// Besides the service.
beforeAll(() => nock.enableNetConnect(/^(127\.0\.0\.1|localhost):/));

/** Tasks of somebody else, of which so many have ended. */
const finished = (count: number, outcome?: 'FAILURE') =>
	Array.from({ length: count }, () => on.finishedTask(outcome));
const pending = (count: number) =>
	Array.from(
		{ length: count },
		() => on.service.createTask(IMAGE_MODEL, { prompt: 'A', simulate: { latencyMs: HOUR } }).taskId,
	);

/** They belong to the trigger of the same workflow. */
function check(taskIds: string[], more: Partial<AwaitedCallback> = {}): TestWorkflow {
	const of = { until: EPOCH + 24 * HOUR, address: '/3f1c2a/callback', triggerId: 'trigger' };
	const deliveries = taskIds.map((taskId) => ({ taskId, ...of, ...more }));
	const node = { parameters: WAIT_PARAMETERS };
	return { ...on.workflow(node, waitItems('Media', deliveries)), mode: 'integrated' };
}

/** Begins a check, which sleeps at once. */
async function begin(...given: Parameters<typeof check>) {
	const begun = await new WorkflowN8n(check(...given)).start();
	expect([begun.isAsleep, on.requests('GET'), begun.ran.output]).toEqual([true, [], []]);
	return begun;
}
const run = async (...given: Parameters<typeof check>) => await (await begin(...given)).end();

/** The trigger of this workflow has started for a task. */
const started = async (taskId: string) =>
	void (await claimStart(executeContext({ node: { ...TRIGGER, id: 'trigger' } }), taskId));

/** The tasks whose callbacks the trigger has got, in order. */
let delivered: string[];
beforeEach(() => {
	delivered = [];
});
afterEach(() => nock.cleanAll());

/** The trigger answers each callback like this. @param accept what follows from a callback */
function answering(status: number, body: object = {}, accept: typeof started = async () => {}) {
	nock.cleanAll();
	nock(N8N)
		.persist()
		.post(TRIGGER_PATH)
		.query({ token: callbackToken(TRIGGER_PATH, on.service.apiKey) })
		.reply(async (_uri, sent) => {
			const { taskId } = sent as { taskId: string };
			delivered.push(taskId);
			await accept(taskId);
			return [status, body];
		});
}

/** The trigger takes each callback, and its workflow starts. */
const taking = (accept = started) => answering(200, { accepted: true }, accept);

it('ends without a read where the ledger has all tasks', async () => {
	taking();
	const tasks = finished(3);
	for (const taskId of tasks) await started(taskId);
	const { output } = await run(tasks);
	expect([on.requests('GET'), delivered]).toEqual([[], []]);
	expect(jsonOf(output)).toEqual(
		tasks.map((taskId) => ({ taskId, delivered: true, delivery: 'callback' })),
	);
});

it('delivers what is finished, and waits for what is not', async () => {
	const [first = ''] = finished(1);
	const [second = ''] = pending(1);
	taking();
	const begun = await begin([first, second]);
	await begun.wake();
	expect([delivered, on.requests('GET').length]).toEqual([[first], 2]);
	on.service.complete(second, 'FAILURE');
	const { run: ran } = await begun.end();
	expect([ran.status, delivered]).toEqual(['success', [first, second]]);
});

it('a turn reads for a minute at most, and the next turn begins with the tasks that it has not read', async () => {
	on.service.configure({ readsPerSecond: { limit: 1, retryAfter: 1 } });
	const begun = await begin(pending(150));
	const [{ until = NaN } = {}] = begun.sleeps;
	await begun.wake();
	expect(Date.now() - until).toBeLessThan(100 * SECOND);
	const read = () =>
		on
			.requests('GET')
			.filter(({ status }) => status === 200)
			.map(({ path }) => path);
	const { length } = read();
	expect(length).toBeGreaterThan(20);
	expect(length).toBeLessThan(150);
	await begun.wake();
	expect(read().slice(0, length)).not.toContain(read()[length]);
});

it('a trigger of another n8n has started when it has taken the callback', async () => {
	const [taskId = ''] = finished(1);
	const token = callbackToken(TRIGGER_PATH, on.service.apiKey, 'row 7');
	const other = nock('https://other.test')
		.post(TRIGGER_PATH, { taskId, state: 'SUCCESS' })
		.query({ token, reference: 'row 7' })
		.reply(200, { accepted: true });
	const address = `https://other.test${TRIGGER_PATH}?reference=row+7`;
	const begun = await begin([taskId], { address, triggerId: undefined });
	const { run: ran } = await begun.end();
	expect([ran.status, begun.row.wakes, other.isDone()]).toEqual(['success', 1, true]);
});

it('at the end of the time it fails with the tasks that have not started alone, each with its reason', async () => {
	const [late = ''] = pending(1);
	const others = finished(2);
	taking();
	const { error, description } = await run([late, ...others], { until: EPOCH + 20 * MINUTE });
	expect(error?.message).toBe("1 task of 'Media' did not reach the trigger");
	expect(description).toContain(`${late}: The task is not finished after 1200 s`);
	expect(description).not.toContain(others[0]);
	expect(Math.abs(on.elapsed - 20 * MINUTE)).toBeLessThan(2 * MINUTE);
});

it('goes on where the service refuses the key for half an hour, as with a key that is replaced: the tasks are paid for', async () => {
	const tasks = finished(1);
	taking();
	on.service.configure({ readStatus: 401 });
	setTimeout(() => on.service.resetSettings(), 30 * MINUTE);
	const { run: ran } = await run(tasks);
	expect([ran.status, delivered]).toEqual(['success', tasks]);
});

describe('a trigger', () => {
	it('that refuses is told after a quarter of an hour, with its answer and all tasks', async () => {
		const tasks = finished(2);
		answering(401, { message: 'Not for me' });
		const { error, description } = await run(tasks);
		expect(error?.message).toBe("2 tasks of 'Media' did not reach the trigger");
		for (const id of tasks) {
			const said = `${id}: The trigger did not take the callback of task ${id} (HTTP 401): Not for me`;
			expect(description).toContain(said);
		}
		expect(on.elapsed).toBeGreaterThanOrEqual(15 * MINUTE);
		expect(on.elapsed).toBeLessThan(22 * MINUTE);
		expect(on.requests('GET')).toHaveLength(2);
		expect(delivered.length).toBeLessThan(24);
	});

	it('that refuses for a quarter of an hour does not end the wait for the other tasks: another execution goes on', async () => {
		const [refused = ''] = finished(1);
		const open = pending(2);
		answering(401);
		const begun = await begin([refused, ...open]);
		const { error, description } = await begun.end();
		expect(error?.message).toBe("1 task of 'Media' did not reach the trigger");
		expect(description).not.toContain(open[0]);
		const others = begun.n8n.rows.filter((row) => row !== begun.row);
		expect(others.map(({ status }) => status)).toEqual(['waiting']);
		for (const id of open) expect(others[0]?.begin).toContain(id);
		expect(others[0]?.begin).not.toContain(refused);
		// The retry is for the refused task alone.
		taking();
		delivered = [];
		const retried = await (await begun.retry()).end();
		expect([retried.run.status, delivered]).toEqual(['success', [refused]]);
	});

	it('that cannot answer now is asked again until the time of the task is up', async () => {
		const tasks = finished(1);
		answering(503);
		const { error, description } = await run(tasks, { until: EPOCH + 3 * HOUR });
		expect(error?.message).toContain('did not reach');
		expect(description).toContain('HTTP 503');
		expect(Math.abs(on.elapsed - 3 * HOUR)).toBeLessThan(17 * MINUTE);
	});

	it('is not called without a key: the task is delivered when the credential can be used again', async () => {
		const tasks = finished(1);
		answering(401);
		const begun = await begin(tasks);
		Object.assign(begun.n8n.test, { credential: { baseUrl: '', apiKey: '' } });
		for (let wakes = 0; wakes < 15; wakes++) await begun.wake();
		expect([begun.row.status, delivered]).toEqual(['waiting', []]);
		Object.assign(begun.n8n.test, { credential: on.credential });
		taking();
		expect((await begun.end()).run.status).toBe('success');
	});

	it('in another workflow that says twice that the task was let in is believed', async () => {
		const [taskId = ''] = finished(1);
		answering(200, { accepted: false, reason: 'duplicate' });
		const { output } = await run([taskId], { triggerId: undefined });
		expect(jsonOf(output)).toMatchObject([{ delivered: true, delivery: 'duplicate' }]);
		expect(delivered).toEqual([taskId, taskId]);
	});

	it('that does not want the event has not started for it', async () => {
		const tasks = finished(1, 'FAILURE');
		answering(200, { accepted: false, reason: 'event not selected' });
		const { output } = await run(tasks);
		expect(jsonOf(output)).toMatchObject([{ delivered: false, delivery: 'notSelected' }]);
	});

	it('whose executions die before the workflow starts gets the callback again, for 50 minutes', async () => {
		const [taskId = ''] = finished(1);
		taking(async () => await (on.elapsed > 50 * MINUTE ? started(taskId) : undefined));
		const begun = await begin([taskId]);
		await begun.wake();
		expect(begun.ran.hints.join()).toContain(
			`its last answer: The trigger took the callback of task ${taskId}, and has not started its workflow`,
		);
		const { output } = await begun.end();
		expect(jsonOf(output)).toMatchObject([{ delivered: true, delivery: 'accepted' }]);
		expect(on.elapsed).toBeGreaterThan(50 * MINUTE);
		expect(delivered.length).toBeLessThan(20);
	});

	it('that has started before the user changed the base URL is not called again', async () => {
		const [taskId = ''] = finished(1);
		const begun = await begin([taskId]);
		await started(taskId);
		const baseUrl = on.credential.baseUrl.replace('127.0.0.1', 'localhost');
		Object.assign(begun.n8n.test, { credential: { ...on.credential, baseUrl } });
		taking();
		expect(field((await begun.end()).output, 'delivery')).toEqual(['callback']);
		expect(delivered).toEqual([]);
	});
});

it('says while it sleeps how many have come, and what the trigger answered last', async () => {
	const [refused = ''] = finished(1);
	const [come = '', open = ''] = pending(2);
	answering(401, { message: 'The token does not match' });
	const begun = await begin([come, refused, open]);
	const said = () => begun.ran.hints.join();
	expect(said()).toContain('0 of 3 results have reached the trigger (0 by callback)');
	await started(come);
	await begun.wake();
	expect(said()).toContain(
		`1 of 3 results have reached the trigger (1 by callback); its last answer: The trigger did not take the callback of task ${refused} (HTTP 401): The token does not match`,
	);
});

it.each(['killed in a turn', 'stopped while it slept'])(
	'a check that was %s goes on when it is retried, as it says',
	async (how) => {
		const [taskId = ''] = pending(1);
		taking();
		const begun = await begin([taskId]);
		expect(begun.ran.hints.join()).toContain("If you stop this run, use 'Retry execution' later");
		if (how.startsWith('killed')) await begun.killedTurn();
		else await begun.stop();
		on.service.complete(taskId);
		const end = await (await begun.retry()).end();
		expect([end.run.status, delivered]).toEqual(['success', [taskId]]);
	},
);

describe('Repeat Callback', () => {
	/** The trigger at n8n's address, which may be in the same workflow. */
	const own = { ...TRIGGER, id: 'trigger' };
	const send = async (taskIds: string[], triggers = [own]) => {
		const callbackUrl = N8N + TRIGGER_PATH;
		const task = { resource: 'task', operation: 'redeliver', taskId: '={{ $json.taskId }}' };
		const node = { ...keepsGoing, parameters: { ...task, callbackUrl } };
		const items = taskIds.map((taskId) => ({ json: { taskId } }));
		return jsonOf((await on.run(node, items, { triggers })).output);
	};
	const token = () => callbackToken(TRIGGER_PATH, on.service.apiKey);

	it('sends finished tasks to the trigger without their record and the API key, and leaves unfinished ones alone', async () => {
		const [taskId = ''] = finished(1);
		const trigger = nock(N8N, { badheaders: ['authorization'] })
			.post(TRIGGER_PATH, { taskId, state: 'SUCCESS' })
			.query({ token: token() })
			.reply(200, { accepted: true });
		expect(await send([taskId, ...pending(1)], [])).toMatchObject([
			{ state: 'SUCCESS', delivered: true, delivery: 'accepted' },
			{ state: 'PENDING', delivered: false },
		]);
		expect(trigger.isDone()).toBe(true);
	});

	it.each([
		['a web page', 200, '<!DOCTYPE html><title>Log in</title>', 'A web page answers in place of'],
		['a refusal', 404, 'Cannot POST ?token=TOKEN', '(HTTP 404): Cannot POST ?token=***'],
		['a long refusal', 404, `${'x'.repeat(460)} ?token=TOKEN`, 'x'.repeat(460)],
	])(
		'that is answered with %s is an error of the item, which shows no part of the token',
		async (_what, status, body, error) => {
			answering(status, body.replace('TOKEN', token()) as never);
			const items = await send(finished(1), []);
			expect(items).toMatchObject([{ state: 'SUCCESS', error: text(error) }]);
			expect(JSON.stringify(items)).not.toContain(token().slice(0, 8));
		},
	);

	describe('to a trigger of the same workflow', () => {
		it('that has started for the task does not call it', async () => {
			const [taskId = ''] = finished(1);
			taking();
			await started(taskId);
			expect(await send([taskId])).toMatchObject([{ delivered: true, delivery: 'duplicate' }]);
			expect(delivered).toEqual([]);
		});

		it('that starts a little after its answer has delivered the result', async () => {
			taking(async (taskId) => void time.later(3 * SECOND, () => void started(taskId)));
			expect(await send(finished(1))).toMatchObject([{ delivered: true, delivery: 'accepted' }]);
			expect(delivered).toHaveLength(1);
		});

		it('whose execution dies has nothing delivered, and the item says so', async () => {
			answering(200, { accepted: true });
			const [taskId = ''] = finished(1);
			const items = await send([taskId]);
			const error = text('has not started its workflow');
			expect(items).toMatchObject([{ taskId, error, advice: text('list of executions') }]);
			expect(items[0]).not.toHaveProperty('delivered');
			expect(on.elapsed).toBeLessThan(10 * SECOND);
		});
	});
});

describe('a run that notifies a trigger', () => {
	/** The tasks that each check waits for, and when it was begun. */
	let checks: Array<{ at: number; taskIds: string[] }>;
	let refusals: number;
	/** The settings of each sub-execution, and all that it is handed. */
	let settings: unknown[];
	let handed: string;
	beforeEach(() => {
		checks = [];
		refusals = 0;
		settings = [];
		handed = '';
	});

	const executeWorkflow: IWorkflowExecuteAdditionalData['executeWorkflow'] = async (
		{ code },
		_data,
		{ inputData = [] },
	) => {
		settings.push(code?.settings);
		handed += JSON.stringify(inputData);
		if (refusals-- > 0) throw new Error('No sub-workflows now');
		// A stopped run leaves another execution behind, which lists its tasks.
		const awaited = inputData.filter(({ json }) => json.address !== undefined);
		if (awaited.length > 0)
			checks.push({ at: Date.now(), taskIds: field(awaited, 'taskId') as string[] });
		return await Promise.resolve({ executionId: '2', data: [null] });
	};

	/** Creates a task for each of these settings of the service, one after the other. */
	function notify(simulate: Settings[], more: object = {}, url = N8N + TRIGGER_PATH, test = {}) {
		const parameters = { completion: 'trigger', callbackUrl: url };
		const node = imageNode({ maxInFlight: 1 }, { ...more, parameters });
		const items = simulate.map((each, index) => item(`Prompt ${index}`, each));
		const workflow = on.workflow(node, prompts(...items));
		return startWorkflow({ ...workflow, ...test, host: { executeWorkflow } });
	}
	const checked = () => checks.map(({ taskIds }) => taskIds);
	const refused = (retryAfter: number): Settings => ({
		createStatus: { status: 429, times: 1, retryAfter },
	});

	it('leaves a check behind, which is handed the address without its token and has the settings of the workflow, but for what would end it or refuse it', async () => {
		const own = {
			...{ timezone: 'Europe/Berlin', errorWorkflow: 'hears', saveManualExecutions: false },
			...{ saveDataErrorExecution: 'none', saveDataSuccessExecution: 'all' },
			...{ saveExecutionProgress: true, callerPolicy: 'none', executionTimeout: 300 },
		};
		await passTime(notify([{}], {}, undefined, { settings: own }).result);
		expect(checked()).toEqual([on.taskIds]);
		expect(handed).toContain('/3f1c2a/callback');
		expect(handed).not.toContain('token');
		const made = { engineType: 'v1', executionOrder: 'v1', executionTimeout: -1 };
		const callerPolicy = 'workflowsFromSameOwner';
		expect(settings).toEqual([{ ...own, ...made, callerPolicy, saveDataSuccessExecution: 'none' }]);
	});

	it('leaves none for a test address, which n8n answers only while somebody listens', async () => {
		await passTime(notify([{}], {}, `${N8N}/webhook-test/3f1c2a/callback`).result);
		expect([on.created, checks]).toEqual([1, []]);
	});

	it('and takes long to create has its first tasks checked before the last is created, or with the others where n8n does not start the early check', async () => {
		await passTime(notify([{}, {}, refused(300)]).result);
		expect(checked()).toEqual([on.taskIds.slice(0, 2), on.taskIds.slice(2)]);
		expect(checks[0]?.at).toBeLessThan((checks[1]?.at ?? 0) - 200 * SECOND);
		on.service.clear();
		checks = [];
		refusals = 1;
		await passTime(notify([{}, refused(100)]).result);
		expect(checked()).toEqual([on.taskIds]);
	});

	it('and is stopped has checked what was created before', async () => {
		const { execution, result } = notify([{}, refused(300)]);
		await settle();
		await time.pass(5 * SECOND);
		await settle();
		execution.cancel();
		expect((await passTime(result)).run.status).toBe('canceled');
		await passTime(time.pass(20 * SECOND));
		expect([on.created, checked()]).toEqual([1, [on.taskIds]]);
	});

	it('in several tries leaves one check for each task', async () => {
		const { run: ran } = await passTime(
			notify([{}, { createStatus: { status: 400, times: 2 } }], threeTries).result,
		);
		expect([ran.status, on.created, checked().flat()]).toEqual(['success', 2, on.taskIds]);
	});

	it('that the service cannot reach orders without an address, and has its tasks checked', async () => {
		const test = { credential: { ...on.credential, baseUrl: 'https://api.example.com' } };
		let body = {};
		nock('https://api.example.com')
			.post('/api/generate', (sent) => (body = sent as object) !== undefined)
			.reply(200, { taskId: 'task-1' });
		const url = `http://localhost:5678${TRIGGER_PATH}`;
		const { hints } = await passTime(notify([{}], {}, url, test).result);
		expect(Object.keys(body)).toEqual(['model', 'input']);
		expect(hints.join()).toContain('so the order names no callback address');
		expect(checked()).toEqual([['task-1']]);
	});
});
