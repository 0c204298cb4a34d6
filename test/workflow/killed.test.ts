import { StoredRun, WorkflowN8n } from './n8n/workflowN8n';
import { store } from './processedData';
import { field, imageNode, many, prompts, SECOND, stage } from './support';
import { pass, passUntil } from './time';

/** What a kill, a stop and their retries order, on n8n's own engine and in virtual time. */

const on = stage();
const images = (count: number, seconds = 30) => prompts(...many(count, seconds * SECOND));

const rows = () => [...store.rows.keys()].filter((row) => row.includes('node-under-test:'));

const NOT_KEPT = 'n8n has not kept what it created';

it('a kill in the first turn: the retry orders nothing and says what to do, and so does its retry', async () => {
	const n8n = new WorkflowN8n(on.workflow(imageNode(), images(3, 60)));
	const run = n8n.begin();
	await passUntil(() => on.created === 3);
	await run.n8n.kill(run);
	const retry = await run.retry();
	expect(retry.ran.error?.message).toContain(NOT_KEPT);
	expect(retry.ran.description).toContain('Wait for Task');
	expect((await retry.retry()).ran.error?.message).toContain(NOT_KEPT);
	expect(on.created).toBe(3);
});

describe('a run that was killed in a later turn', () => {
	/** The first turn has ordered four, so the second turn may order so many. */
	const WINDOW = 10;

	/** 30 items at two places, killed when the second turn has ordered two. */
	async function killedLater() {
		const run = await on.start(imageNode({ suspendAfter: 1, maxInFlight: 2 }), images(30));
		await run.wake();
		const before = on.created;
		await passUntil(() => on.created === before + 2);
		await run.n8n.kill(run);
		return run;
	}
	const inDoubt = (items: ReturnType<typeof prompts>) =>
		field(items, 'error').filter((error) => String(error).startsWith('It is not known'));

	it('is ordered by the first of two retries one after the other, and a retry of the second one orders nothing', async () => {
		const run = await killedLater();
		const first = await run.retry();
		await first.end();
		const orders = on.created;
		const second = await run.retry();
		const refused = [await second.end(), await (await second.retry()).end()];
		for (const { error } of refused) {
			expect(error?.message).toContain('Another retry of execution 1 goes on with its tasks');
		}
		expect(on.created).toBe(orders);
		expect(inDoubt(first.ran.output)).toHaveLength(WINDOW);
	});

	it('leaves the windows of both turns in doubt where its retry is killed, too', async () => {
		const run = await killedLater();
		const orders = on.created;
		const retry = new StoredRun(run.n8n, run.n8n.executions.retry(run.row)!);
		await passUntil(() => on.created === orders + 2);
		await retry.n8n.kill(retry);
		const again = await retry.retry();
		const { output } = again.isAsleep ? await again.end() : again.ran;
		expect(inDoubt(output)).toHaveLength(2 * WINDOW);
		expect(on.created).toBe(30 - 2 * WINDOW + 4);
	});

	it('leaves no row when its retry has ended', async () => {
		const run = await killedLater();
		const retry = await run.retry();
		await retry.end();
		await pass(SECOND);
		// The claim of the retry stays as long as the execution can be retried, and so does the row of the killed turn.
		expect(rows()).toHaveLength(2);
	});
});

it('the rows of a run are gone when the execution has ended', async () => {
	const run = await on.start(imageNode({ suspendAfter: 1, maxInFlight: 2 }), images(12));
	expect(rows()).not.toEqual([]);
	await run.end();
	await pass(SECOND);
	expect(rows()).toEqual([]);
});
