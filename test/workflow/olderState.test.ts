import type { IDataObject } from 'n8n-workflow';

import { enter, isTerminal } from './n8n/database';
import { type StoredRun, WorkflowN8n } from './n8n/workflowN8n';
import {
	field,
	imageNode,
	item,
	keepsGoing,
	many,
	MINUTE,
	prompts,
	SECOND,
	stage,
} from './support';
import { pass, passUntil } from './time';

/**
 * With a concurrency limit n8n may start an execution from an older copy of its data, and store that in the place of the
 * newer one. On n8n's own engine and in virtual time.
 */

const on = stage();
const images = (count: number, seconds: number) => prompts(...many(count, seconds * SECOND));
const errorsIn = (items: Parameters<typeof field>[0]) => field(items, 'error').filter(Boolean);

/** n8n starts the run from a copy. */
function handOut({ row }: StoredRun, data: string): void {
	if (isTerminal(row.status)) enter(row, 'waiting');
	Object.assign(row, { data, waitTill: Date.now() });
}

it.each<IDataObject>([{ suspendAfter: 1, maxInFlight: 4 }, { suspendAfter: 0 }])(
	'each older state, handed out after each later sleep, orders nothing twice (%j)',
	async (options) => {
		const run = await on.start(imageNode(options, keepsGoing), images(24, 20));
		const states = [run.row.data];
		for (let turn = 0; turn < 3 && run.isAsleep; turn++) {
			await run.wake();
			if (!run.isAsleep) break;
			states.push(run.row.data);
			handOut(run, states[Math.floor(states.length / 2) - 1] ?? '');
		}
		const { output } = await run.end();
		expect(on.created).toBe(24);
		expect(errorsIn(output)).toEqual([]);
	},
);

it('the older state orders nothing itself: n8n stores the newest one in its place first', async () => {
	const run = await on.start(imageNode({ suspendAfter: 0, maxInFlight: 1 }), images(24, 20));
	const { data } = run.row;
	await run.wake();
	const newest = run.row.data;
	const orders = on.created;
	handOut(run, data);
	await run.wake();
	expect(run.isAsleep).toBe(true);
	expect(on.created).toBe(orders);
	expect(run.row.data.length).toBeGreaterThan(0.9 * newest.length);
	await run.end();
	expect(on.created).toBe(24);
});

it('the state of an earlier round of a loop, handed out while a later round sleeps, orders nothing twice', async () => {
	const all = images(12, 40);
	const rounds = [all.slice(0, 4), all.slice(4, 8), all.slice(8)];
	const node = imageNode({ suspendAfter: 0 }, keepsGoing);
	const run = new WorkflowN8n({ ...on.workflow(node), rounds }).begin();
	await passUntil(() => run.isAsleep);
	const { data } = run.row;
	await passUntil(() => on.created > 4 && run.isAsleep);
	handOut(run, data);
	const { run: ended } = await run.end();
	expect(on.created).toBe(12);
	const runs = ended.data.resultData.runData.Media ?? [];
	const out = runs.flatMap(({ data: put }) => put?.main?.[0] ?? []);
	expect(out).toHaveLength(12);
	expect(errorsIn(out)).toEqual([]);
});

it('a round of a loop that has ended without a sleep is not ordered again, where the state of the round before is handed out', async () => {
	const rounds = [images(4, 90), images(4, 10), images(4, 90)];
	const node = imageNode({ suspendAfter: 1 }, keepsGoing);
	const run = new WorkflowN8n({ ...on.workflow(node), rounds }).begin();
	await passUntil(() => run.isAsleep);
	const { data } = run.row;
	await passUntil(() => on.created === 12 && run.isAsleep);
	handOut(run, data);
	await run.end();
	expect(on.created).toBe(12);
});

it.each(['success', 'error'])(
	'the first state, handed out after the end with %s, orders nothing',
	async (status) => {
		const isFailing = status === 'error';
		const failing = item('fails', { latencyMs: 30 * SECOND, outcome: 'FAILURE' });
		const items = [...images(5, 40), ...prompts(...(isFailing ? [failing] : many(1, 40 * SECOND)))];
		const options = { suspendAfter: 0, ifSomeFail: 'stop' };
		const run = await on.start(imageNode(options), items);
		const { data } = run.row;
		await run.end();
		expect(run.row.status).toBe(status);
		handOut(run, data);
		await run.end();
		expect(run.row.status).toBe(status);
		expect(on.created).toBe(6);
	},
);

it('an older state whose newer one is forgotten after half an hour has its orders in doubt', async () => {
	const refusal = { status: 429, after: 6, times: 1, retryAfter: 3_600 };
	on.service.configure({ createStatus: refusal });
	const options = { suspendAfter: 0, maxInFlight: 4 };
	const run = await on.start(imageNode(options, keepsGoing), images(12, 20));
	const { data } = run.row;
	await passUntil(() => on.created === 6);
	await passUntil(() => run.isAsleep && run.sleepMs > 10 * MINUTE);
	const orders = on.created;
	await pass(31 * MINUTE);
	handOut(run, data);
	const { output } = await run.end();
	expect(on.created).toBe(orders);
	expect(errorsIn(output)).toHaveLength(12);
	expect(String(errorsIn(output)[0])).toContain('It is not known whether the task was created');
});
