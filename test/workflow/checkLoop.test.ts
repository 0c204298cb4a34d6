import { ExecuteContext } from 'n8n-core';
import type { INodeExecutionData } from 'n8n-workflow';
import nock from '../nock';

import { checkItem, doneItems } from '../../nodes/MediaGeneration/suspend/checkState';
import { CHECK, REPORT, SUPERVISE } from '../../nodes/MediaGeneration/suspend/checkWorkflow';
import { item, PARENT, resultsCheck } from '../unit/suspend/checks';
import { SERVICE } from './engine';
import { runSub, type SubExecution } from './subExecution';
import { HOUR, MINUTE } from '../durations';

/**
 * The two sub-executions of a suspended run, connected as n8n runs them: each of their nodes leads back to itself. What
 * throws in them must end them or pause them. Straight back would be a loop that lets nothing else happen in n8n.
 */

const NOW = Date.now();

const TASKS = ['task-0', 'task-1'];

const state = resultsCheck({
	startedAt: NOW,
	items: [0, 1].map((index) => item(index, NOW + HOUR)),
});

/** The same, as a newer version of this package would store it. */
const newer = <T>(stored: T): T =>
	JSON.parse(JSON.stringify(stored).replaceAll('"version":1', '"version":2')) as T;

interface Given extends SubExecution {
	/** The operation of the node that runs next, and what it gets. */
	at: string;
	items: INodeExecutionData[];
	/** A method of n8n's context that throws. */
	broken?: keyof ExecuteContext & string;
}

afterEach(() => {
	jest.restoreAllMocks();
	nock.cleanAll();
});

/** Runs a sub-execution until it ends or pauses. */
async function run({ at, items, broken, ...sub }: Given) {
	const onStart = () => {
		if (!broken) return;
		const spy = jest.spyOn(ExecuteContext.prototype, broken as never) as jest.SpyInstance;
		spy.mockImplementation(() => {
			throw new Error(`${broken} does not work`);
		});
	};
	const given = { begin: [checkItem(state)], stored: { 7: PARENT }, onStart, ...sub };
	const { turns, until, error } = await runSub(at, items, given);
	jest.restoreAllMocks();
	const description = error && 'description' in error ? String(error.description) : '';
	const said = error && `${error.message} ${description}`;
	return { pausedMs: until && until.getTime() - NOW, error: said, turns };
}

/** It ends or pauses: straight back would be a loop. */
const expectNoLoop = ({ error, pausedMs = 0 }: Awaited<ReturnType<typeof run>>) =>
	expect(error !== undefined || pausedMs >= MINUTE).toBe(true);

const away = async () => await Promise.reject(new Error('The database is away'));

/** Where the supervisor goes on: at its begin, and where the checker has ended, however it ended. */
const BEGIN = { at: SUPERVISE, items: [checkItem(state)] };
const DIED = { at: REPORT, items: [{ json: { error: 'died' } }] };
const TURNS_OF_SUPERVISOR: Array<[string, Given]> = [
	['begins', BEGIN],
	['hears of the death of the checker', { ...DIED, kept: { checkerId: '9' } }],
];

describe.each(TURNS_OF_SUPERVISOR)('a supervisor that %s', (_what, given) => {
	const supervise = async (host: Given['host'] = {}, broken?: Given['broken']) =>
		await run({ ...given, host, ...(broken && { broken }) });

	it('has one check, and waits for its end', async () => {
		const { error, pausedMs, turns } = await supervise();
		expect(error).toBeUndefined();
		expect(pausedMs).toBeGreaterThan(24 * HOUR);
		expect(turns.at(-1)).toBe(SUPERVISE);
	});

	const allAway = { executeWorkflow: away, getRunExecutionData: away };
	const awake = async () => await Promise.resolve({ executionId: '9', data: [null] });

	it.each<[string, Given['host']]>([
		['n8n starts no checker', { executeWorkflow: away }],
		['the checker does not sleep', { executeWorkflow: awake }],
		['nothing can be read and nothing started', allAway],
	])('tries again in a minute where %s', async (_why, host) => {
		const { error, pausedMs } = await supervise(host);
		expect(error).toBeUndefined();
		expect(pausedMs).toBeGreaterThanOrEqual(MINUTE);
		expect(pausedMs).toBeLessThan(2 * MINUTE);
	});

	it.each(['getContext', 'getInputData', 'getNode', 'getExecutionId', 'getWorkflow'] as const)(
		'ends or pauses where %s of its context throws',
		async (method) => {
			expectNoLoop(await supervise({}, method));
		},
	);

	it('ends where it can neither start a checker nor pause', async () => {
		const { error } = await supervise({ executeWorkflow: away }, 'putExecutionToWait');
		expect(error).toContain('putExecutionToWait does not work');
	});
});

describe('a supervisor whose state a newer version wrote ends, and names its tasks', () => {
	const begin = [newer(checkItem(state))];
	const found = newer(doneItems(TASKS.map((taskId) => ({ json: { taskId } }))));

	it.each<[string, Given]>([
		['at its begin', { at: SUPERVISE, items: begin }],
		['after the checker has died', { ...DIED, begin }],
		['in what the checker has found', { at: REPORT, items: found }],
	])('(%s)', async (_where, given) => {
		const { error, pausedMs, turns } = await run(given);
		expect(pausedMs).toBeUndefined();
		expect(error).toContain('another version of this package');
		expect(error).toMatch(/Its tasks: task-0, task-1.*Update n8n-nodes.*Task → Wait/s);
		for (const id of TASKS) expect(error).toContain(id);
		expect(turns.length).toBeLessThanOrEqual(3);
	});
});

it('a supervisor whose checker found the results ends with them', async () => {
	const found = doneItems([{ json: { taskId: 'task-1' } }]);
	const { error, pausedMs, turns } = await run({ at: REPORT, items: found });
	expect([error, pausedMs, turns]).toEqual([undefined, undefined, [REPORT, SUPERVISE]]);
});

describe('a checker', () => {
	const kept = { state: { ...state }, runs: 2 };
	const check = async (more: Partial<Given> = {}) =>
		await run({ at: CHECK, items: [checkItem(state)], kept, ...more });

	it.each<Given['broken']>([
		...(['getContext', 'getInputData', 'getNode', 'getExecutionId', 'getExecuteData'] as const),
		...(['getExecutionDataById', 'getCredentials', 'getExecutionCancelSignal'] as const),
		'putExecutionToWait',
	])('ends or pauses where %s of its context throws', async (broken) => {
		nock(SERVICE).persist().get(/.*/).reply(200, { state: 'PENDING' });
		for (const turns of [{ kept: {} }, { kept }]) expectNoLoop(await check({ ...turns, broken }));
	});

	it('whose state a newer version wrote ends, and names its tasks', async () => {
		for (const stored of [{ items: [newer(checkItem(state))], kept: {} }, { kept: newer(kept) }]) {
			const { error } = await check(stored);
			for (const id of TASKS) expect(error).toContain(id);
		}
	});
});
