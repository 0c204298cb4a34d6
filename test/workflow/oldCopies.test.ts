import { isTerminal } from './n8n/database';
import { connect } from './n8n/nodes';
import { type StoredRun, WorkflowN8n } from './n8n/workflowN8n';
import { field, imageNode, keepsGoing, many, prompts, SECOND, stage } from './support';
import type { TestWorkflow } from './testWorkflow';
import { passUntil } from './time';

/**
 * With a production concurrency limit n8n runs old copies of executions: it reads what sleeps, has it wait for a place, and
 * begins with what was read, also if the execution has gone on meanwhile.
 */

const on = stage();

const VIDEO_MS = 100 * SECOND;

/** An n8n that runs one execution at a time: the tested node, and a node behind that makes a video of each picture. */
class PicturesThenVideos extends WorkflowN8n {
	constructor(test: TestWorkflow) {
		super(test, false, 1);
	}

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

const workflow = (pictures: number, seconds: number) =>
	on.workflow(imageNode({ suspendAfter: 1 }), prompts(...many(pictures, seconds * SECOND)));

const ordersOf = (videos: boolean) =>
	on.inputs.filter(({ prompt }) => String(prompt).startsWith('video') === videos).length;

const atEnd = async (...runs: StoredRun[]) =>
	await passUntil(() => runs.every(({ row }) => isTerminal(row.status)));

/** The states of the items that have left the last node, in its last run. */
const statesOf = ({ data }: StoredRun, node: string) =>
	field(data.resultData.runData[node]?.at(-1)?.data?.main?.[0] ?? [], 'state');

const succeeded = (count: number) => Array.from({ length: count }, () => 'SUCCESS');

it('three pictures and their videos are ordered once, although n8n runs three copies of the run that sleeps', async () => {
	const n8n = new PicturesThenVideos(workflow(3, 90));
	const run = await n8n.start();
	n8n.occupy(150 * SECOND);
	await atEnd(run);
	expect([ordersOf(false), ordersOf(true)]).toEqual([3, 3]);
	expect(statesOf(run, 'Videos')).toEqual(succeeded(3));
});

it('four webhooks that wait for one place order one picture and one video each', async () => {
	const n8n = new PicturesThenVideos(workflow(1, 90));
	const runs = Array.from({ length: 4 }, () => n8n.begin('webhook'));
	await atEnd(...runs);
	expect([ordersOf(false), ordersOf(true)]).toEqual([4, 4]);
	for (const run of runs) expect(statesOf(run, 'Videos')).toEqual(succeeded(1));
});

it('a batch of which n8n runs old copies orders each item once, and leaves none in doubt', async () => {
	const options = { suspendAfter: 1, maxInFlight: 4 };
	const test = on.workflow(imageNode(options, keepsGoing), prompts(...many(24, 20 * SECOND)));
	const n8n = new WorkflowN8n(test, false, 1);
	const run = await n8n.start();
	n8n.occupy(150 * SECOND);
	await run.wake();
	n8n.occupy(150 * SECOND);
	const { output } = await run.end();
	expect(on.created).toBe(24);
	expect(field(output, 'state')).toEqual(succeeded(24));
});
