import type { IDataObject, INodeExecutionData } from 'n8n-workflow';

import { Downloader } from '../../nodes/MediaGeneration/report/download';
import { clock } from '../../nodes/MediaGeneration/shared/clock';
import { isTerminal } from './n8n/database';
import { StoredRun, WorkflowN8n } from './n8n/workflowN8n';
import { useProcessedData } from './processedData';
import { field, imageNode, item, keepsGoing, many, prompts, SECOND, stage } from './support';
import { EPOCH } from '../virtualTime';
import { pass, passUntil } from './time';

/** Runs in a process of n8n that knows at which second of the minute n8n looks: it has woken a run late before. */

useProcessedData();
const on = stage();

/** An n8n that looks at each full minute from now on, and a run that begins so many seconds after a look. */
async function begun(
	items: INodeExecutionData[],
	options: IDataObject,
	phase: number,
	more: object = {},
) {
	const n8n = new WorkflowN8n({ ...on.workflow(imageNode(options), items), ...more }).warm();
	await pass(phase * SECOND);
	return { n8n, run: n8n.begin() };
}

const images = (count: number, seconds: number) => prompts(...many(count, seconds * SECOND));

describe('a task is late by at most ten seconds, whenever in the minute its run begins', () => {
	const phases = [2, 16, 29, 44, 53, 58];
	const cases = [45, 60, 90, 120, 200].flatMap((seconds) =>
		[1, 5].map((count) => [seconds, count] as const),
	);

	it.each(cases)('a task of %d s, %d at once', async (seconds, count) => {
		const late: number[] = [];
		for (const phase of phases) {
			const { run } = await begun(images(count, seconds), {}, phase);
			const from = on.elapsed;
			const { output } = await run.end();
			expect(field(output, 'state')).toEqual(Array(count).fill('SUCCESS'));
			late.push((on.elapsed - from) / SECOND - seconds);
			on.service.clear();
		}
		expect(Math.max(...late)).toBeLessThanOrEqual(10);
	});
});

it('a task that ends within half a minute of its order is not late at all', async () => {
	for (const phase of [0, 20, 33, 45, 50, 55, 59]) {
		const { run } = await begun(images(1, 20), {}, phase);
		const from = on.elapsed;
		await run.end();
		expect(run.sleeps).toHaveLength(0);
		expect(on.elapsed - from).toBeLessThan(25 * SECOND);
	}
});

it('each order is stored a minute and a half later at the latest, and the run wakes at the look', async () => {
	const { run } = await begun(images(24, 40), { maxInFlight: 4 }, 13);
	await run.end();
	const { sleeps } = run;
	expect(sleeps.length).toBeGreaterThan(2);
	const stored = sleeps.map(({ from }) => from);
	for (const task of on.tasks) {
		const next = stored.find((at) => at >= task.createdAt) ?? Infinity;
		if (next < Infinity) expect(next - task.createdAt).toBeLessThanOrEqual(92 * SECOND);
	}
});

it.each([5, 1])(
	'two batches beside each other, one of which learns when n8n looks: neither stands still (Sleep After %d)',
	async (suspendAfter) => {
		const node = imageNode({ maxInFlight: 4, suspendAfter });
		const n8n = new WorkflowN8n({ ...on.workflow(node, images(40, 10)) });
		await pass(20 * SECOND);
		const one = n8n.begin();
		await pass(25 * SECOND);
		const other = n8n.begin();
		await passUntil(() => [one, other].every(({ row }) => isTerminal(row.status)));
		for (const { ran } of [one, other]) {
			expect(field(ran.output, 'state')).toEqual(Array(40).fill('SUCCESS'));
		}
		const at = on.tasks.map(({ createdAt }) => createdAt).sort((a, b) => a - b);
		const gaps = at.slice(1).map((each, index) => (each - (at[index] ?? 0)) / SECOND);
		// Who sleeps where nobody knows when n8n looks sleeps a minute once.
		expect(gaps.filter((gap) => gap > 20).length).toBeLessThanOrEqual(1);
	},
);

/** Each file takes so long. */
function slowFiles(seconds: number): void {
	const downloader = Downloader.prototype as unknown as {
		tryOnce: (...given: unknown[]) => Promise<unknown>;
	};
	const { tryOnce } = downloader;
	jest.spyOn(downloader, 'tryOnce').mockImplementation(async function (this: unknown, ...given) {
		await clock.sleep(seconds * SECOND, undefined);
		return await tryOnce.apply(this, given);
	});
}
afterEach(() => jest.restoreAllMocks());

describe('files that take long', () => {
	async function batchTook(
		downloadResults: boolean,
		[count, seconds]: [number, number] = [40, 18],
		options: IDataObject = {},
	): Promise<number> {
		const more = { maxInFlight: 4, downloadResults, ...options };
		const { run } = await begun(images(count, seconds), more, 10);
		const from = on.elapsed;
		const { output } = await run.end();
		expect(field(output, 'state')).toEqual(Array(count).fill('SUCCESS'));
		expect(output.every(({ binary }) => binary?.data)).toBe(downloadResults);
		on.service.clear();
		return (on.elapsed - from) / SECOND;
	}

	it('of 12 s keep no run from its looks', async () => {
		const without = await batchTook(false);
		slowFiles(12);
		// The last files come when all tasks have ended.
		expect(await batchTook(true)).toBeLessThanOrEqual(1.1 * without + 12);
	});

	it('of a minute keep no run from its looks that sleeps whenever it can', async () => {
		const without = await batchTook(false, [16, 60], { suspendAfter: 0 });
		slowFiles(60);
		const took = await batchTook(true, [16, 60], { suspendAfter: 0 });
		expect(took).toBeLessThanOrEqual(1.3 * without + 60);
	});

	it('that take longer than a turn come all the same, and what was ordered is stored', async () => {
		slowFiles(70);
		const { run } = await begun(images(28, 18), { maxInFlight: 4, downloadResults: true }, 10);
		const { output } = await run.end();
		expect(output.every(({ binary }) => binary?.data)).toBe(true);
		expect(run.sleeps.length).toBeGreaterThan(0);
	});
});

it('a run that sleeps whenever it can orders as soon as its places are free, also if tasks take minutes', async () => {
	const { run } = await begun(images(16, 90), { maxInFlight: 4, suspendAfter: 0 }, 40);
	await run.end();
	const orders = on.tasks.map(({ createdAt }) => createdAt);
	const gaps = orders.slice(1).map((at, index) => at - (orders[index] ?? 0));
	expect(Math.max(...gaps)).toBeLessThanOrEqual(100 * SECOND);
});

describe('a loop of short rounds', () => {
	it('is stored like one long run', async () => {
		const rounds = Array.from({ length: 15 }, () => images(1, 20));
		const n8n = new WorkflowN8n({ ...on.workflow(imageNode({}, keepsGoing)), rounds }).warm();
		await pass(12 * SECOND);
		const run = n8n.begin();
		await passUntil(() => isTerminal(run.row.status));
		expect(on.created).toBe(15);
		expect(run.row.sleeps).toBeGreaterThanOrEqual(4);
	});
});

describe("n8n's time limit", () => {
	it('counts from the start of the execution: a second round leaves before it', async () => {
		const rounds = [images(1, 200), images(1, 400), []];
		const settings = { executionTimeout: 300 };
		const node = imageNode({}, keepsGoing);
		const n8n = new WorkflowN8n({ ...on.workflow(node), rounds, settings }).warm();
		await pass(10 * SECOND);
		const run = n8n.begin();
		const from = on.elapsed;
		await passUntil(() => isTerminal(run.row.status));
		expect(run.row.status).toBe('success');
		expect(on.elapsed - from).toBeLessThan(300 * SECOND);
		const runs = run.data.resultData.runData.Media ?? [];
		const last = runs.flatMap(({ data }) => data?.main?.[0] ?? []).at(-1);
		expect(last?.json).toMatchObject({ taskId: on.taskIds.at(-1), timedOut: true });
	});

	it('counts from the start of a retry: a later round of it ends before it', async () => {
		const rounds = Array.from({ length: 9 }, () => images(1, 55));
		const settings = { executionTimeout: 300 };
		const test = { ...on.workflow(imageNode()), credential: { ...on.credential, apiKey: '' } };
		const n8n = new WorkflowN8n({ ...test, rounds, settings }).warm();
		const failed = n8n.begin();
		await passUntil(() => isTerminal(failed.row.status));
		Object.assign(n8n.test, { credential: on.credential });
		const retry = new StoredRun(n8n, n8n.executions.retry(failed.row)!);
		await passUntil(() => isTerminal(retry.row.status));
		expect(retry.row.status).toBe('error');
		expect(retry.ran.error?.message).toContain(on.taskIds.at(-1));
		expect(on.created).toBeGreaterThan(2);
	});

	it('cancels no run whose files come late: the items leave before it, and name their tasks', async () => {
		slowFiles(70);
		const settings = { executionTimeout: 300 };
		const node = imageNode({ downloadResults: true }, keepsGoing);
		const items = prompts(
			item('soon', { latencyMs: 30 * SECOND }),
			item('late', { latencyMs: 260 * SECOND }),
		);
		const n8n = new WorkflowN8n({ ...on.workflow(node, items), settings }).warm();
		await pass(10 * SECOND);
		const { output, error } = await n8n.begin().end();
		expect(error).toBeUndefined();
		expect(output[0]?.binary?.data).toBeDefined();
		expect(output[1]?.json).toMatchObject({ taskId: on.taskIds[1], state: 'SUCCESS' });
		expect(output[1]?.json.error).toContain('The file has not come');
	});
});

it('a media host that is away for longer than the time limit has n8n cancel no run: the items leave before it, and name their tasks', async () => {
	on.service.configure({ mediaStatus: { status: 503 } });
	const settings = { executionTimeout: 300 };
	const node = imageNode({ downloadResults: true }, keepsGoing);
	const items = prompts(...many(3, 10 * SECOND), ...many(3, 25 * SECOND), ...many(3, 40 * SECOND));
	const { output, error } = await new WorkflowN8n({ ...on.workflow(node, items), settings })
		.begin()
		.end();
	expect(error).toBeUndefined();
	expect(field(output, 'taskId').sort()).toEqual([...on.taskIds].sort());
	expect(field(output, 'state')).toEqual(Array(9).fill('SUCCESS'));
});

describe('a database that is away', () => {
	it('when a run is to sleep: the run stays awake, and goes on', async () => {
		const { n8n, run } = await begun(images(30, 15), { maxInFlight: 4 }, 10);
		await pass(43 * SECOND);
		// The turn ends 55 s after the look.
		n8n.database.goAway(8 * SECOND);
		const { output, error } = await run.end();
		expect(error).toBeUndefined();
		expect(field(output, 'state')).toEqual(Array(30).fill('SUCCESS'));
		expect(on.created).toBe(30);
		// The look that the database missed, and the next one.
		const [first] = run.sleeps;
		expect(((first?.from ?? 0) - EPOCH) / SECOND).toBeGreaterThan(110);
	});
});
