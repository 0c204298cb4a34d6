import { ExecuteContext, WorkflowExecute } from 'n8n-core';
import {
	type IDataObject,
	type INodeExecutionData,
	type INodeTypes,
	type IRun,
	type IWorkflowExecuteAdditionalData,
	createRunExecutionData,
	NodeHelpers,
	UnexpectedError,
	Workflow,
} from 'n8n-workflow';
import nock from '../nock';

import { MediaGeneration } from '../../nodes/MediaGeneration/MediaGeneration.node';
import { checkItem, doneItems } from '../../nodes/MediaGeneration/suspend/checkState';
import {
	CHECK,
	CHECKER,
	checkWorkflow,
	nodeName,
	REPORT,
	START,
	SUPERVISE,
	SUPERVISOR,
} from '../../nodes/MediaGeneration/suspend/checkWorkflow';
import { item, PARENT, resultsCheck } from '../unit/suspend/checks';
import { additionalData, CREDENTIAL, executeContext, SERVICE } from './engine';

/**
 * The two sub-executions of a suspended run, connected as n8n runs them: each of their nodes leads back to itself. What
 * throws in them must end them or pause them. Straight back would be a loop that lets nothing else happen in n8n.
 */

const NOW = Date.now();
const HOUR = 3_600_000;

/** More turns than any of them takes between two pauses. */
const MOST_TURNS = 12;

const TASKS = ['task-0', 'task-1'];

const state = resultsCheck({
	startedAt: NOW,
	items: [0, 1].map((index) => item(index, NOW + HOUR)),
});

/** The same, as a newer version of this package would store it. */
const newer = <T>(stored: T): T =>
	JSON.parse(JSON.stringify(stored).replaceAll('"version":1', '"version":2')) as T;

interface Given {
	role: string[];
	/** The node that runs next, and what it gets. */
	at: string;
	items: INodeExecutionData[];
	/** What the supervisor began with. */
	begun?: INodeExecutionData;
	/** What the node keeps in its context. */
	kept?: IDataObject;
	/** A method of n8n's context that throws. */
	broken?: keyof ExecuteContext & string;
	/** What n8n does otherwise. */
	more?: Partial<IWorkflowExecuteAdditionalData>;
}

const OPEN: Array<{ mockRestore: () => void }> = [];
afterEach(() => {
	for (const spy of OPEN.splice(0)) spy.mockRestore();
	nock.cleanAll();
});

/** From now on a method of n8n's context throws. */
function breaks(method: keyof ExecuteContext & string): void {
	const spy = jest.spyOn(ExecuteContext.prototype, method as never) as jest.SpyInstance;
	spy.mockImplementation(() => {
		throw new Error(`${method} does not work`);
	});
	OPEN.push(spy);
}

/** Runs a sub-execution until it ends or pauses. */
async function run({
	role,
	at,
	items,
	begun = checkItem(state),
	kept = {},
	more = {},
	broken,
}: Given) {
	const type = new MediaGeneration();
	const start = { ...type, description: { ...type.description, name: 'start' } };
	const nodeTypes: INodeTypes = {
		getByName: (name) => (name === 'mediaGeneration' ? type : start),
		getByNameAndVersion: (name) => (name === 'mediaGeneration' ? type : start),
		getKnownTypes: () => ({}),
	};
	const made = checkWorkflow(executeContext(), role, undefined);
	for (const node of made.nodes) {
		node.parameters =
			NodeHelpers.getNodeParameters(
				type.description.properties,
				node.parameters,
				true,
				false,
				node,
				type.description,
			) ?? {};
		// No panel offers its operations, and n8n fills in nothing for a sub-workflow.
		node.parameters = { ...node.parameters, operation: node.id };
	}
	const workflow = new Workflow({ ...made, nodeTypes, staticData: {} });
	const node = workflow.getNode(nodeName(at));
	if (!node) throw new UnexpectedError(`No node ${at}`);
	const data: IWorkflowExecuteAdditionalData = {
		...additionalData(CREDENTIAL, 'integrated'),
		executionId: '8',
		getRunExecutionData: async (id) =>
			await Promise.resolve(id === '7' ? (PARENT as never) : undefined),
		executeWorkflow: async () =>
			await Promise.resolve({ executionId: '9', data: [null], waitTill: new Date() }),
		...more,
	};
	if (broken) breaks(broken);
	const turns: string[] = [];
	const ended = new Promise<IRun>((resolve) => {
		data.hooks?.addHandler('workflowExecuteAfter', (ran) => resolve(ran));
	});
	const operation = role[0] ?? '';
	const stored = createRunExecutionData({
		resultData: { runData: { [START]: [{ data: { main: [[begun]] } } as never] } },
		executionData: {
			contextData: { [`node:${nodeName(operation)}`]: kept },
			nodeExecutionStack: [{ node, data: { main: [items] }, source: null }],
		},
	});
	const execution = new WorkflowExecute(data, 'integrated', stored).processRunExecutionData(
		workflow,
	);
	data.hooks?.addHandler('nodeExecuteBefore', (name) => {
		turns.push(name);
		if (turns.length > MOST_TURNS) execution.cancel();
	});
	execution.catch(() => undefined);
	const ran = await ended;
	for (const spy of OPEN.splice(0)) spy.mockRestore();
	expect(turns.length).toBeLessThanOrEqual(MOST_TURNS);
	const { waitTill } = ran;
	const error = ran.data.resultData.error;
	return {
		pausedMs: waitTill ? waitTill.getTime() - NOW : undefined,
		error: error && `${error.message} ${'description' in error ? String(error.description) : ''}`,
		turns: turns.map((name) => made.nodes.find((each) => each.name === name)?.id),
	};
}

const away = async () => await Promise.reject(new Error('The database is away'));
const MINUTE = 60_000;

/** Where the supervisor goes on: at its begin, and where the checker has ended, however it ended. */
const TURNS_OF_SUPERVISOR: Array<[string, Omit<Given, 'role'>]> = [
	['begins', { at: SUPERVISE, items: [checkItem(state)] }],
	[
		'hears of the death of the checker',
		{ at: REPORT, items: [{ json: { error: 'died' } }], kept: { checkerId: '9' } },
	],
	['begins again', { at: SUPERVISE, items: [checkItem(state)], kept: { checkerId: '9' } }],
];

describe.each(TURNS_OF_SUPERVISOR)('a supervisor that %s', (_what, given) => {
	const supervise = async (more: Given['more'] = {}, broken?: Given['broken']) =>
		await run({ role: SUPERVISOR, ...given, more, ...(broken && { broken }) });

	it('has one check, and waits for its end', async () => {
		const { error, pausedMs, turns } = await supervise();
		expect(error).toBeUndefined();
		expect(pausedMs).toBeGreaterThan(24 * HOUR);
		expect(turns.at(-1)).toBe(SUPERVISE);
	});

	it.each<[string, Given['more']]>([
		['n8n starts no checker', { executeWorkflow: away }],
		[
			'the checker does not sleep',
			{ executeWorkflow: async () => await Promise.resolve({ executionId: '9', data: [null] }) },
		],
		[
			'nothing can be read and nothing started',
			{ executeWorkflow: away, getRunExecutionData: away },
		],
	])('tries again in a minute where %s', async (_why, more) => {
		const { error, pausedMs } = await supervise(more);
		expect(error).toBeUndefined();
		expect(pausedMs).toBeGreaterThanOrEqual(MINUTE);
		expect(pausedMs).toBeLessThan(2 * MINUTE);
	});

	it.each(['getContext', 'getInputData', 'getNode', 'getExecutionId', 'getWorkflow'] as const)(
		'ends or pauses where %s of its context throws',
		async (method) => {
			const { error, pausedMs } = await supervise({}, method);
			expect(error !== undefined || (pausedMs ?? 0) >= MINUTE).toBe(true);
		},
	);

	it('ends where it can neither start a checker nor pause', async () => {
		const { error } = await supervise({ executeWorkflow: away }, 'putExecutionToWait');
		expect(error).toContain('putExecutionToWait does not work');
	});
});

describe('a supervisor whose state a newer version wrote ends, and names its tasks', () => {
	it.each<[string, Omit<Given, 'role'>]>([
		['at its begin', { at: SUPERVISE, items: [newer(checkItem(state))] }],
		[
			'after the checker has died',
			{ at: REPORT, items: [{ json: { error: 'died' } }], begun: newer(checkItem(state)) },
		],
		[
			'in what the checker has found',
			{
				at: REPORT,
				items: newer(doneItems(TASKS.map((taskId) => ({ json: { taskId } })))),
			},
		],
	])('(%s)', async (_where, given) => {
		const { error, pausedMs, turns } = await run({ role: SUPERVISOR, ...given });
		expect(pausedMs).toBeUndefined();
		expect(error).toContain('another version of this package');
		for (const id of TASKS) expect(error).toContain(id);
		expect(turns.length).toBeLessThanOrEqual(3);
	});
});

it('a supervisor whose checker found the results ends with them', async () => {
	const found = doneItems([{ json: { taskId: 'task-1' } }]);
	const { error, pausedMs, turns } = await run({ role: SUPERVISOR, at: REPORT, items: found });
	expect([error, pausedMs, turns]).toEqual([undefined, undefined, [REPORT, SUPERVISE]]);
});

describe('a checker', () => {
	const kept = { state: { ...state }, turns: 2 };
	const check = async (more: Partial<Given> = {}) =>
		await run({ role: CHECKER, at: CHECK, items: [checkItem(state)], kept, ...more });

	it.each<[string, string | number]>([
		['is unfinished', 'PENDING'],
		['cannot be read', 500],
		['is not for this key', 401],
	])('sleeps where a task %s', async (_what, answer) => {
		const reply = nock(SERVICE).persist().get(/.*/);
		if (typeof answer === 'number') reply.reply(answer, {});
		else reply.reply(200, { state: answer });
		const { error, pausedMs } = await check();
		expect(error).toBeUndefined();
		expect(pausedMs).toBeGreaterThanOrEqual(MINUTE);
	});

	it('ends with its results', async () => {
		nock(SERVICE).persist().get(/.*/).reply(200, { state: 'SUCCESS' });
		const { error, pausedMs, turns } = await check();
		expect([error, pausedMs, turns]).toEqual([undefined, undefined, [CHECK, CHECK]]);
	});

	it.each([
		'getContext',
		'getInputData',
		'getNode',
		'getExecutionId',
		'getExecutionDataById',
		'getCredentials',
		'putExecutionToWait',
		'getExecuteData',
		'getExecutionCancelSignal',
	] as const)('ends or pauses where %s of its context throws', async (method) => {
		nock(SERVICE).persist().get(/.*/).reply(200, { state: 'PENDING' });
		for (const turns of [{}, { kept }]) {
			const { error, pausedMs } = await check({ kept: {}, ...turns, broken: method });
			expect(error !== undefined || (pausedMs ?? 0) >= MINUTE).toBe(true);
		}
	});

	it('whose state a newer version wrote ends, and names its tasks', async () => {
		for (const stored of [{ items: [newer(checkItem(state))], kept: {} }, { kept: newer(kept) }]) {
			const { error } = await check(stored);
			for (const id of TASKS) expect(error).toContain(id);
		}
	});
});
