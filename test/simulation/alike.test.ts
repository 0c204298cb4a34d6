import fc from 'fast-check';
import type { IDataObject, INode, INodeExecutionData } from 'n8n-workflow';

import type { Settings } from '../service/settings';
import { fromStored } from '../workflow/stored';
import { type History, PLAIN } from './history';
import { enact } from './simulate';
import { NodeSources } from './world/nodeSources';
import { callbackSwitches } from './world/fate';
import type { World } from './world/world';
import { MINUTE, SECOND } from '../durations';

/**
 * A run may be held, or suspended at once, or after a while: whoever reads what it puts out cannot tell which it was.
 */

const sources = new NodeSources();

/** The setting of nodes saved before n8n had *On Error*. */
const OLDER = { onError: undefined, continueOnFail: true } as unknown as Partial<INode>;

/** Longer than any of these runs takes. */
const END_MS = 60 * MINUTE;

const NEVER_MS = 2 * END_MS;

/** What becomes of one item's tasks, and what the item itself says. */
interface Item {
	/** How long each task takes, milliseconds. */
	ms: number;
	/** How many of its tasks fail before one succeeds. */
	failures: number;
	results: number;
	callback?: 'lost' | 'doubled' | 'late' | undefined;
	/** What becomes of the reads of its tasks, or of its files. */
	trouble: Settings;
	/** What the parameters of the node take from the item. */
	says: IDataObject;
	/** Whether the item has a file under the name that a result is to have. */
	hasFile: boolean;
}

type Node = Partial<History['node']>;

interface Batch {
	items: Item[];
	node: Node;
	requests: History['requests'];
}

const QUICK = [0.5 * SECOND, 8 * SECOND, 25 * SECOND];

/**
 * What is said of one task or its files, a moment or for ever. Not a refused key: a held run gives its tasks up with three
 * such answers in a row, and a suspended one has the time to wait for a new key.
 */
const TROUBLES: Settings[] = [
	{ readStatus: { status: 404, times: 1 } },
	...[404, 503].map((status) => ({ readStatus: { status } })),
	{ extraFields: { state: '' } },
	{ mediaStatus: 404 },
];

/** n8n resumes by time once a minute, so a suspended run may find what ended shortly after its time was up: none does. */
const itemOf = (seconds: number, durations: number[]): fc.Arbitrary<Item> =>
	fc.record({
		ms: fc.constantFrom(...durations, NEVER_MS),
		failures: fc.constantFrom(0, 0, 0, 1, 9),
		results: fc.constantFrom(1, 1, 2, 3, 0),
		callback: fc.constantFrom(undefined, undefined, 'lost', 'doubled', 'late'),
		trouble: fc.constantFrom({}, {}, {}, {}, {}, ...TROUBLES),
		says: fc.record({
			seconds: fc.constant(seconds),
			downloads: fc.boolean(),
			field: fc.constantFrom('data', 'picture', 'data_1'),
			// The last of these is no reference, and no price: the item is refused before anything is created for it.
			reference: fc.constantFrom('row 1', 'row 2', 0, '', 'row 3', 'row 4', {}),
			price: fc.constantFrom(0, 0.5, 2, 3, 4, 5, 'dear'),
			// Fields that the node puts out, too.
			...{ taskId: fc.constantFrom('task of the input', 7), state: fc.constant('SUCCESS') },
			...{ error: fc.constantFrom(undefined, 'of the input'), timedOut: fc.constant(true) },
		}),
		hasFile: fc.boolean(),
	});

const items = fc.oneof(itemOf(47, QUICK), itemOf(611, [...QUICK, 70 * SECOND, 200 * SECOND]));

const batches: fc.Arbitrary<Batch> = fc.record({
	items: fc.array(items, { minLength: 1, maxLength: 6 }),
	node: fc.record({
		onError: fc.constantFrom('stopWorkflow', 'continueRegularOutput', 'continueErrorOutput'),
		settings: fc.constantFrom({}, {}, {}, OLDER),
		ifSomeFail: fc.constantFrom('keep', 'stop'),
		pollIntervalSeconds: fc.constantFrom(2, 5),
		maxInFlight: fc.constantFrom(10, 2),
		downloads: fc.boolean(),
		retryFailed: fc.constantFrom(0, 0, 1, 2),
		more: fc
			.record(
				{
					reference: fc.constant('={{ $json.reference }}'),
					pricePerTaskUsd: fc.constant('={{ $json.price }}'),
					downloadResults: fc.constant('={{ $json.downloads }}'),
					outputBinaryField: fc.constant('={{ $json.field }}'),
					includeInput: fc.constant(true),
				},
				{ requiredKeys: [] },
			)
			.map((more) => ({ ...more, timeout: '={{ $json.seconds }}' })),
	}),
	// One of the creates is refused, or its answer is lost.
	requests: fc.array(
		fc.record({
			on: fc.constant('create'),
			nth: fc.nat({ max: 3 }),
			what: fc.constantFrom('answer lost', '404'),
		}),
		{ maxLength: 1 },
	),
});

/** All that can be told of a run that has come to its end. */
interface Told {
	status: string;
	error: string | undefined;
	description: string[];
	/** The node's outputs. */
	outputs: unknown[];
	/** What the nodes behind it have got, and how often they were run. */
	behind: unknown[];
	/** How many tasks were created for each item. */
	creates: Record<string, number>;
	isSuspended: boolean;
}

async function run({ items, node, requests }: Batch, suspendAfter: number): Promise<Told> {
	const history: History = {
		...PLAIN,
		node: { ...PLAIN.node, ...node, suspendAfter, items: items.length },
		requests,
	};
	const world = await enact(history, sources, async ({ time, n8n, user, service }) => {
		service.script = (name, attempt) => {
			const { ms, failures, results, callback, trouble } = items[
				Number(name.split(' ').pop())
			] as Item;
			return {
				latencyMs: ms,
				resultCount: results,
				...(attempt <= failures && { outcome: 'FAILURE' }),
				...trouble,
				...callbackSwitches(callback),
			};
		};
		user.activate(true);
		await time.run(SECOND);
		const file = { mimeType: 'text/plain', fileName: 'own.txt', data: btoa('of the input') };
		user.start(
			items.map(({ says, hasFile }) => ({
				json: says,
				...(hasFile && { binary: { data: file } }),
			})),
		);
		while (n8n.isBusy || time.now < 2 * SECOND) {
			if (time.now > END_MS) throw new Error('The run does not end');
			await time.run(time.now + MINUTE);
		}
	});
	return tell(world);
}

function tell(world: World): Told {
	const row = world.n8n.rows.get('1');
	if (!row) throw new Error('No execution');
	const data = fromStored(row.data);
	const names = namesOf(world);
	const tell = <T>(value: T): T =>
		JSON.parse(
			[...names].reduce(
				(text, [id, name]) => text.replaceAll(id, name),
				JSON.stringify(value ?? null),
			),
		) as T;
	const { error } = data.resultData;
	const run = data.resultData.runData.Media?.at(-1);
	const creates: Told['creates'] = {};
	for (const { item } of world.service.tasks) creates[item] = (creates[item] ?? 0) + 1;
	return {
		status: row.status,
		error: tell(error?.message),
		description: wordsOf(tell(error && 'description' in error ? error.description : undefined)),
		outputs: (run?.data?.main ?? []).map((list) => tell((list ?? []).map(shown))),
		behind: world.n8n.sunk
			.filter(({ execution }) => execution === '1')
			.map(({ node, items }) => [node, tell(items.map(shown))]),
		creates,
		isSuspended: row.waits > 0,
	};
}

/** Why a task of a run that stops was not created anew. */
const NOT_ANEW = /(It was not created again|If it fails by chance)[^.]*\./;

/** The tasks are named in the order in which they were created, or in that of their items. */
const wordsOf = (text: unknown) =>
	String(text ?? '')
		.replace(NOT_ANEW, '')
		.split(/[,.]?\s+|[.,]$/)
		.sort();

/** The tasks of each item get names that do not depend on what else was created in between. */
function namesOf({ service }: World): Map<string, string> {
	const counts = new Map<string, number>();
	return new Map(
		service.tasks.map(({ id, item }) => {
			const nth = (counts.get(item) ?? 0) + 1;
			counts.set(item, nth);
			return [id, `task ${nth} of ${item}`];
		}),
	);
}

/** An item with its files, and the index of the input item that it is linked to. */
function shown({ json, binary = {}, pairedItem }: INodeExecutionData) {
	const files = Object.entries(binary).map(([name, { data, mimeType, fileName }]) => {
		return { name, mimeType, fileName, content: Buffer.from(data, 'base64').toString() };
	});
	const link =
		typeof pairedItem === 'object' && 'item' in pairedItem ? pairedItem.item : pairedItem;
	return { keys: Object.keys(json), json: json as IDataObject, files, link };
}

/** How often a run was suspended: a test that never suspends would show nothing. */
const seen = { suspended: 0, held: 0, failed: 0, late: 0, files: 0 };

async function expectAlike(batch: Batch): Promise<void> {
	const { isSuspended: _, ...held } = await run(batch, 10_000);
	for (const minutes of [0, 1]) {
		const { isSuspended, ...other } = await run(batch, minutes);
		expect(other).toEqual(held);
		seen[isSuspended ? 'suspended' : 'held']++;
	}
	const text = JSON.stringify(held);
	if (held.status === 'error') seen.failed++;
	if (text.includes('timedOut')) seen.late++;
	if (text.includes('picture at')) seen.files++;
}

const RUNS = Number(process.env.ALIKE_RUNS ?? 40);

describe('a run that is held, and the same run suspended at once or after a minute', () => {
	it('put out the same items, or fail with the same words', async () => {
		const property = fc.asyncProperty(batches, expectAlike);
		const seed = Number(process.env.ALIKE_SEED ?? 1);
		await fc.assert(property, { numRuns: RUNS, seed, endOnFailure: RUNS > 40 });
		// Each of these has been there.
		for (const count of Object.values(seen)) expect(count).toBeGreaterThan(0);
	}, 600_000);
});
