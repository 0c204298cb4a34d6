import {
	type IDataObject,
	type IExecuteFunctions,
	type INodeExecutionData,
	sleep,
} from 'n8n-workflow';

import { internalsOf } from '../../nodes/MediaGeneration/n8n/internals';
import { sleepAndRunAgain, takeInputBack } from '../../nodes/MediaGeneration/n8n/runAgain';
import { connect, nodeOf, nodeType } from './n8n/nodes';
import { inN8n } from './n8n/testN8n';

/** How often each run of the trial node goes to sleep, and how long it is awake before, seconds. */
const SLEEPS = 2;
const AWAKE_SECONDS = 5;

/** Longer than the trial node takes with all its sleeps. */
const ALL_SECONDS = 600;

const PASSED_OVER = [{ json: { error: 'passed over' } }];

/** What each turn of the trial node was: its execution, its run index, and its input. */
let turns: Array<[execution: string, run: number, input: IDataObject[]]>;
/** What the trial node has ordered: nothing may be ordered twice. */
let orders: string[];
beforeEach(() => {
	turns = [];
	orders = [];
});

/** Orders something for each item in its first turn, sleeps, and puts out two items for each item. */
async function trial(context: IExecuteFunctions): Promise<INodeExecutionData[][]> {
	takeInputBack(context);
	const { runIndex = 0 } = internalsOf(context);
	const input = context.getInputData();
	turns.push([context.getExecutionId(), runIndex, input.map(({ json }) => json)]);
	const kept = context.getContext('node');
	const run = (kept[runIndex] ??= { sleeps: 0, ordered: [] }) as {
		sleeps: number;
		ordered: string[];
	};
	for (const { json } of input) {
		const name = `${runIndex}/${String(json.name)}`;
		if (run.ordered.includes(name)) continue;
		run.ordered.push(name);
		orders.push(name);
	}
	await sleep(AWAKE_SECONDS * 1000);
	if (run.sleeps++ < SLEEPS) {
		return await sleepAndRunAgain(context, new Date(Date.now() + 90_000), PASSED_OVER);
	}
	return [
		input.flatMap(({ json }, item): INodeExecutionData[] =>
			[0, 1].map((nth) => ({ json: { ...json, nth }, pairedItem: { item } })),
		),
	];
}

const types = {
	trial: nodeType(trial),
	merge: nodeType(
		async (context) =>
			await Promise.resolve([[...context.getInputData(0), ...context.getInputData(1)]]),
		2,
	),
	/** Puts out one item at a time on its second output, and all that came back on its first one. */
	loop: nodeType(
		async (context) => {
			const kept = context.getContext('node');
			const isFirst = kept.left === undefined;
			const left = isFirst ? context.getInputData() : (kept.left as never[]);
			if (!isFirst) kept.done = [...((kept.done ?? []) as never[]), ...context.getInputData()];
			kept.left = left.slice(1);
			const [next] = left;
			return await Promise.resolve(next ? [[], [next]] : [kept.done as never[], []]);
		},
		1,
		2,
	),
};

const A_AND_B = [{ name: 'a' }, { name: 'b' }];
const OUT = [
	{ name: 'a', nth: 0 },
	{ name: 'a', nth: 1 },
	{ name: 'b', nth: 0 },
	{ name: 'b', nth: 1 },
];

/** The workflow `start > trial > sink`. */
const PLAIN = {
	nodes: [nodeOf('start'), nodeOf('trial'), nodeOf('sink')],
	connections: connect('start > trial', 'trial > sink'),
};

it('of two branches that lead into the node each has its own run', async () => {
	const definition = {
		nodes: [nodeOf('start'), nodeOf('other', { type: 'start' }), nodeOf('trial'), nodeOf('sink')],
		connections: connect('start > trial', 'start > other', 'other > trial', 'trial > sink'),
	};
	await inN8n(definition, types, async (n8n) => {
		await n8n.start(A_AND_B, 2 * ALL_SECONDS);
		expect(n8n.out).toEqual([OUT, OUT]);
		expect(orders).toEqual(['0/a', '0/b', '1/a', '1/b']);
	});
});

it('a Merge behind it gets the items of both branches once', async () => {
	const definition = {
		nodes: [...PLAIN.nodes, nodeOf('merge')],
		connections: connect('start > trial', 'start > merge:1', 'trial > merge', 'merge > sink'),
	};
	await inN8n(definition, types, async (n8n) => {
		await n8n.start(A_AND_B, ALL_SECONDS);
		expect(n8n.out).toEqual([[...OUT, ...A_AND_B]]);
	});
});
