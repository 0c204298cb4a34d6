import { forgetStates } from '../../nodes/MediaGeneration/n8n/newestState';
import { enter, isTerminal } from './n8n/database';
import { connect } from './n8n/nodes';
import { type StoredRun, WorkflowN8n } from './n8n/workflowN8n';
import {
	errorsOf,
	field,
	imageNode,
	images,
	inDoubt,
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
 * newer one.
 */

const on = stage();

/** n8n starts the run from a copy. */
function handOut({ row }: StoredRun, data: string): void {
	if (isTerminal(row.status)) enter(row, 'waiting');
	Object.assign(row, { data, waitTill: Date.now() });
}

it('each older state, handed out after each later sleep, orders nothing twice', async () => {
	const node = imageNode({ suspendAfter: 1, maxInFlight: 4 }, keepsGoing);
	const run = await on.start(node, images(24, 20));
	const states = [run.row.data];
	for (let turn = 0; turn < 3 && run.isAsleep; turn++) {
		await run.wake();
		if (!run.isAsleep) break;
		states.push(run.row.data);
		handOut(run, states[Math.floor(states.length / 2) - 1] ?? '');
	}
	const { output } = await run.end();
	expect([on.created, errorsOf(output)]).toEqual([24, []]);
});

it('the older state orders nothing itself: n8n stores the newest one in its place first', async () => {
	const run = await on.start(imageNode({ suspendAfter: 0, maxInFlight: 1 }), images(12, 20));
	const { data } = run.row;
	await run.wake();
	const newest = run.row.data;
	const orders = on.created;
	handOut(run, data);
	await run.wake();
	expect([run.isAsleep, on.created]).toEqual([true, orders]);
	expect(run.row.data.length).toBeGreaterThan(0.9 * newest.length);
	await run.end();
	expect(on.created).toBe(12);
});

it('the state of an earlier round of a loop, handed out while a later round sleeps, orders nothing twice', async () => {
	const all = images(12, 40);
	const rounds = [all.slice(0, 4), all.slice(4, 8), all.slice(8)];
	const run = on.begin(imageNode({ suspendAfter: 0 }, keepsGoing), undefined, { rounds });
	await passUntil(() => run.isAsleep);
	const { data } = run.row;
	await passUntil(() => on.created > 4 && run.isAsleep);
	handOut(run, data);
	await run.end();
	expect([on.created, run.itemsOf().length, errorsOf(run.itemsOf())]).toEqual([12, 12, []]);
});

it('a round of a loop that has ended without a sleep is not ordered again, where the state of the round before is handed out', async () => {
	const rounds = [images(2, 90), images(2, 10), images(2, 90)];
	const run = on.begin(imageNode({ suspendAfter: 1 }, keepsGoing), undefined, { rounds });
	await passUntil(() => run.isAsleep);
	const { data } = run.row;
	await passUntil(() => on.created === 6 && run.isAsleep);
	handOut(run, data);
	await run.end();
	expect(on.created).toBe(6);
});

it.each(['success', 'error'])(
	'the first state, handed out after the end with %s, orders nothing',
	async (status) => {
		const outcome = status === 'error' ? 'FAILURE' : 'SUCCESS';
		const last = item('last', { latencyMs: 30 * SECOND, outcome });
		const options = { suspendAfter: 0, ifSomeFail: 'stop' };
		const run = await on.start(imageNode(options), [...images(5, 40), ...prompts(last)]);
		const { data } = run.row;
		await run.end();
		expect(run.row.status).toBe(status);
		handOut(run, data);
		await run.end();
		expect([run.row.status, on.created]).toEqual([status, 6]);
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
	await pass(31 * MINUTE);
	handOut(run, data);
	expect(inDoubt((await run.end()).output)).toHaveLength(12);
	expect(on.created).toBe(6);
});

it('a state that no process knows better leaves the window of the turn in doubt that was not stored', async () => {
	const node = imageNode({ suspendAfter: 1, maxInFlight: 2 }, keepsGoing);
	const run = await on.start(node, images(30, 30));
	const { data } = run.row;
	await run.wake();
	const orders = on.created;
	handOut(run, data);
	forgetStates();
	// The first turn has ordered four, so the second turn may order ten.
	expect(inDoubt((await run.end()).output)).toHaveLength(10);
	expect(on.created).toBe(orders + 30 - 14);
});

describe('with one place for executions', () => {
	const VIDEO_MS = 100 * SECOND;

	/** A node behind the tested one makes a video of each picture. */
	class PicturesThenVideos extends WorkflowN8n {
		override get definition() {
			const { nodes, connections } = super.definition;
			const pictures = nodes.find(({ name }) => name === this.tested)!;
			const prompt = "={{ 'video of ' + $json.input.prompt }}";
			const additionalInput = JSON.stringify({ simulate: { latencyMs: VIDEO_MS } });
			const { parameters } = imageNode({ suspendAfter: 1, additionalInput });
			const videos = { ...pictures, id: 'Videos', name: 'Videos' };
			return {
				nodes: [...nodes, { ...videos, parameters: { ...parameters, prompt } as never }],
				connections: { ...connections, ...connect(`${this.tested} > Videos`) },
			};
		}
	}

	it('three pictures and their videos are ordered once, although n8n runs three copies of the run that sleeps', async () => {
		const test = on.workflow(imageNode({ suspendAfter: 1 }), prompts(...many(3, 90 * SECOND)));
		const run = await new PicturesThenVideos(test, false, 1).start();
		run.n8n.occupy(150 * SECOND);
		await run.end();
		expect(on.ordered.filter((prompt) => prompt.startsWith('video'))).toHaveLength(3);
		expect(on.created).toBe(6);
		const states = field(run.itemsOf('Videos').slice(-3), 'state');
		expect(states).toEqual(['SUCCESS', 'SUCCESS', 'SUCCESS']);
	});
});
