import type { IExecuteFunctions, IRunExecutionData } from 'n8n-workflow';

import { startCheck } from '../../../nodes/MediaGeneration/suspend/checkSupervisor';
import type * as CheckSupervisor from '../../../nodes/MediaGeneration/suspend/checkSupervisor';
import { readCheck } from '../../../nodes/MediaGeneration/suspend/checkState';
import { START } from '../../../nodes/MediaGeneration/suspend/checkWorkflow';
import { digest } from '../../../nodes/MediaGeneration/shared/json';
import { BEFORE_N8N_2, onOlderN8n } from '../olderN8n';
import { FakeClock } from '../support';
import { contextOf, deliveryCheck, resultsCheck } from './checks';

const stored = (more: object = {}) =>
	({ resultData: { runData: {} }, ...more }) as IRunExecutionData;
const ASLEEP = stored({ waitTill: new Date(0) });

interface Given {
	states?: unknown[];
	settings?: object | undefined;
	mode?: string;
}

/** Starts sub-executions, of which n8n's database has one thing after the other. */
async function begin(
	work: (context: IExecuteFunctions) => Promise<unknown>,
	{ states = [ASLEEP], settings, mode = 'trigger' }: Given = {},
) {
	let started: Parameters<IExecuteFunctions['executeWorkflow']> | undefined;
	let questions = 0;
	const context = contextOf(
		{},
		{
			executeWorkflow: async (...given: NonNullable<typeof started>) => {
				started = given;
				return await Promise.resolve({ executionId: '9', data: [null], waitTill: new Date(0) });
			},
			getExecutionDataById: async () =>
				await Promise.resolve(states[Math.min(questions++, states.length - 1)]),
			getWorkflowSettings: settings && (() => settings),
			getMode: () => mode,
		},
	);
	const clock = new FakeClock();
	await work(context);
	const [{ code } = {}, items = [], , how] = started ?? [];
	const nodes = code?.nodes.filter(({ parameters }) => parameters.operation) ?? [];
	const operations = nodes.map(({ parameters }) => parameters.operation);
	const { settings: given, connections } = code ?? {};
	const state = readCheck(items);
	return { questions, clock, settings: given, nodes, connections, operations, how, state };
}

const leave = async (context: IExecuteFunctions) => await startCheck(context, deliveryCheck());

const wait = async (context: IExecuteFunctions) => await startCheck(context, resultsCheck());

describe('what is left behind', () => {
	it('is a supervisor, which starts the checker', async () => {
		const { operations, nodes, settings, connections } = await begin(leave);
		expect(operations).toEqual(['supervise', 'report']);
		// A checker that dies comes to the supervisor as an error. A report that fails is to fail its execution.
		expect(nodes.map(({ onError }) => onError)).toEqual(['continueRegularOutput', undefined]);
		expect(settings).toEqual({
			executionOrder: 'v1',
			callerPolicy: 'workflowsFromSameOwner',
			executionTimeout: -1,
			saveDataSuccessExecution: 'all',
			saveDataErrorExecution: 'all',
			saveManualExecutions: true,
		});
		const [supervisor = '', report = ''] = nodes.map(({ name }) => name);
		const to = (node: string) => ({ main: [[{ node, type: 'main', index: 0 }]] });
		expect(connections).toEqual({
			[START]: to(supervisor),
			[supervisor]: to(report),
			[report]: to(supervisor),
		});
	});

	it('is the checker alone on n8n 1, which would wake a supervisor whenever the checker falls asleep', async () => {
		const { startCheck: older } = onOlderN8n(BEFORE_N8N_2, () =>
			jest.requireActual<typeof CheckSupervisor>(
				'../../../nodes/MediaGeneration/suspend/checkSupervisor',
			),
		);
		const { operations, how } = await begin(
			async (context) => await older(context, deliveryCheck()),
		);
		expect(operations).toEqual(['check']);
		const parentExecution = { shouldResume: false };
		expect(how).toMatchObject({ doNotWaitToFinish: true, parentExecution });
	});
});

describe('the error workflow of the workflow', () => {
	it('hears of a check that nobody waits for', async () => {
		const { settings } = await begin(leave, { settings: { errorWorkflow: 'w7' } });
		expect(settings).toMatchObject({ errorWorkflow: 'w7' });
	});

	const NONE = [{}, { errorWorkflow: undefined }, undefined];
	it.each(NONE)('is none where n8n names none (%j)', async (given) => {
		const { settings } = await begin(leave, { settings: given });
		expect(settings).not.toHaveProperty('errorWorkflow');
	});

	it('hears of a suspended run by its own execution, and not twice', async () => {
		const { settings } = await begin(wait, { settings: { errorWorkflow: 'w7' } });
		expect(settings).not.toHaveProperty('errorWorkflow');
	});
});

describe('the error of the execution that is retried', () => {
	const error = { message: 'stopped' };
	const states = [stored({ waitTill: new Date(0), resultData: { runData: {}, error } })];
	it('is known to the check, which is not to take it for the end of the retry', async () => {
		const { state } = await begin(wait, { states, mode: 'retry' });
		expect(state).toEqual({ ...resultsCheck(), earlierError: digest(error) });
	});

	it.each([
		['of a run that is no retry', wait, 'trigger'],
		['of a check that nobody waits for', leave, 'retry'],
	])('is not looked for in the data %s', async (_what, work, mode) => {
		const { state } = await begin(work, { states, mode });
		expect(state).not.toHaveProperty('earlierError');
	});
});

describe('a check that is left behind', () => {
	const failed = stored({ resultData: { runData: {}, error: { message: 'No' } } });

	it.each<[string, unknown[], number]>([
		// One that dies before would never begin.
		['sleeps when the run goes on', [stored(), stored(), ASLEEP], 3],
		['sleeps then, too, if n8n stores it for minutes', [...Array(99).fill(stored()), ASLEEP], 100],
		['is not waited for where it has failed', [failed], 1],
		['is not waited for where it is gone', [undefined], 1],
	])('%s', async (_what, states, expected) => {
		const { questions, clock } = await begin(leave, { states });
		expect(questions).toBe(expected);
		expect(clock.now()).toBe(25 * expected * (expected - 1));
	});
});
