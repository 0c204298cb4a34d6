import { Downloader } from '../../nodes/MediaGeneration/report/download';
import { clock } from '../../nodes/MediaGeneration/shared/clock';
import { type StoredRun, WorkflowN8n } from './n8n/workflowN8n';
import { field, imageNode, keepsGoing, many, MINUTE, prompts, SECOND, stage } from './support';
import { pass, passUntil } from './time';

/** How long a run is awake, and when its items leave, on n8n's own engine and in virtual time. */

const on = stage();
const images = (count: number, seconds: number) => prompts(...many(count, seconds * SECOND));

/** Begins a run some seconds after n8n has begun to look. */
async function begin(...given: Parameters<typeof on.workflow>): Promise<StoredRun> {
	const n8n = new WorkflowN8n(on.workflow(...given));
	await pass(10 * SECOND);
	return n8n.begin();
}

const errorsIn = ({ ran }: StoredRun) => field(ran.output, 'error').filter(Boolean);

afterEach(() => jest.restoreAllMocks());

it.each([20, 45, 90, 150, 280])(
	'a picture of %d s is at most five seconds late',
	async (seconds) => {
		const run = await begin(imageNode(), images(1, seconds));
		const from = on.elapsed;
		await run.end();
		expect(run.sleeps).toEqual([]);
		expect(on.elapsed - from - seconds * SECOND).toBeLessThanOrEqual(5 * SECOND);
	},
);

it('a picture of 400 s sleeps after five minutes, for a quarter of the time waited', async () => {
	const run = await begin(imageNode(), images(1, 400));
	const from = on.elapsed;
	await run.end();
	const slept = run.sleeps.map(({ from: at, until }) => [at, until - at]);
	expect(slept).toHaveLength(2);
	expect(slept[0]?.[1]).toBeGreaterThanOrEqual(75 * SECOND);
	expect(slept[0]?.[1]).toBeLessThan(90 * SECOND);
	expect(on.elapsed - from).toBeLessThan(500 * SECOND);
});

it('the rounds of a loop are one run: they sleep together, five minutes after the execution began', async () => {
	const rounds = images(10, 45).map((each) => [each]);
	const n8n = new WorkflowN8n({ ...on.workflow(imageNode()), rounds });
	const from = Date.now();
	const run = n8n.begin();
	await passUntil(() => run.isAsleep);
	const [first] = run.sleeps;
	expect((first?.from ?? 0) - from).toBeGreaterThanOrEqual(5 * MINUTE);
	expect((first?.from ?? 0) - from).toBeLessThan(5 * MINUTE + 10 * SECOND);
	expect(on.created).toBe(7);
	await run.end();
	expect(on.created).toBe(10);
});

it('while something is left to order, each later turn lasts 55 s, and begins at the look of n8n after the turn before', async () => {
	const options = { maxInFlight: 4 };
	const run = await begin(imageNode(options, keepsGoing), images(120, 20));
	await run.rests();
	for (let turn = 0; turn < 3; turn++) {
		const { from } = run.sleeps.at(-1) ?? { from: NaN };
		await passUntil(() => run.row.wakes > turn);
		expect(Date.now() - from).toBeLessThanOrEqual(MINUTE);
		const wokenAt = Date.now();
		await run.rests();
		const awakeMs = Date.now() - wokenAt;
		expect(awakeMs).toBeGreaterThanOrEqual(55 * SECOND);
		expect(awakeMs).toBeLessThan(58 * SECOND);
	}
});

it('a turn orders its window and no more: ten at first, then twice what the turn before has ordered', async () => {
	const run = await on.start(imageNode({ suspendAfter: 0, maxInFlight: 100 }), images(100, 30));
	const orders: number[] = [];
	for (let turn = 0; turn < 3; turn++) {
		const before = on.created;
		await run.wake();
		orders.push(on.created - before);
	}
	expect(orders).toEqual([10, 20, 40]);
});

it('a night takes at most 1.1 times what it takes without a sleep', async () => {
	const run = await begin(imageNode({}, keepsGoing), images(240, 50));
	const from = on.elapsed;
	await run.end();
	expect(errorsIn(run)).toEqual([]);
	const heldMs = (240 / 10) * 50 * SECOND;
	expect((on.elapsed - from) / heldMs).toBeLessThanOrEqual(1.1);
});

describe('a file that takes minutes holds up nothing but its own item', () => {
	/** One download of the run takes so long. */
	function slowDown(which: number, ms: number): void {
		const downloader = Downloader.prototype as unknown as {
			tryOnce: (...given: unknown[]) => Promise<unknown>;
		};
		const { tryOnce } = downloader;
		let downloads = 0;
		const slow = async function (this: unknown, ...given: unknown[]) {
			if (++downloads === which) await clock.sleep(ms, undefined);
			return await tryOnce.apply(this, given);
		};
		jest.spyOn(downloader, 'tryOnce').mockImplementation(slow);
	}

	const longestGap = () =>
		on.tasks.reduce(
			({ gap, at }, { createdAt }) => ({ gap: Math.max(gap, createdAt - at), at: createdAt }),
			{ gap: 0, at: Infinity },
		).gap;

	it.each([
		['4 minutes in the first turn', 4, 3, 80],
		['15 minutes in the first turn', 15, 3, 80],
		['a minute in a later turn', 1, 150, 240],
		['4 minutes in a later turn', 4, 150, 240],
	])('%s', async (_what, minutes, which, count) => {
		slowDown(which, minutes * MINUTE);
		const options = { maxInFlight: 4, downloadResults: true };
		const run = await begin(imageNode(options, keepsGoing), images(count, 10));
		await run.end();
		expect(errorsIn(run)).toEqual([]);
		expect(on.created).toBe(count);
		expect(longestGap()).toBeLessThanOrEqual(MINUTE);
	});

	it('a turn that goes on for it, and is killed: what its windows may have ordered is not ordered again', async () => {
		slowDown(30, 4 * MINUTE);
		const options = { maxInFlight: 4, suspendAfter: 1, downloadResults: true };
		const run = await begin(imageNode(options, keepsGoing), images(150, 10));
		let asleepAt = Infinity;
		await passUntil(() => {
			if (run.isAsleep) asleepAt = Date.now();
			return Date.now() > asleepAt + 160 * SECOND;
		});
		await run.n8n.kill(run);
		const retry = await run.retry();
		await retry.end();
		expect(new Set(on.inputs.map(({ prompt }) => prompt)).size).toBe(on.created);
	});
});
