import fc from 'fast-check';
import type { IDataObject, INode, INodeExecutionData } from 'n8n-workflow';

import { groupBy } from '../groupBy';
import type { Settings } from '../service/settings';
import { fromStored } from '../workflow/stored';
import type { PartlyHistory } from './history';
import { enactRun } from './simulate';
import { callbackSwitches } from './world/fate';
import type { World } from './world/world';
import { MINUTE, SECOND } from '../durations';

/**
 * A run may be held, or suspended at once, or after a while: whoever reads what it puts out cannot tell which it was.
 */

/** The setting of nodes saved before n8n had *On Error*. */
const OLDER = { onError: undefined, continueOnFail: true } as unknown as Partial<INode>;

/** Longer than any of these runs takes. */
const END_MS = 60 * MINUTE;

const NEVER_MS = 2 * END_MS;

const QUICK = [0.5 * SECOND, 8 * SECOND, 25 * SECOND];

/**
 * What is said of one task for a moment. Trouble that lasts is not alike: a run that sleeps tries for ten minutes more, and
 * its tasks hold their places so long.
 */
const TROUBLES: Settings[] = [404, 503].map((status) => ({ readStatus: { status, times: 1 } }));

/** n8n resumes by time once a minute, so a suspended run may find what ended shortly after its time was up: none does. */
const itemOf = (seconds: number, durations: number[]) =>
	fc.record({
		/** How long each of its tasks takes, how many of them fail before one succeeds, and what becomes of them. */
		ms: fc.constantFrom(...durations, NEVER_MS),
		failures: fc.constantFrom(0, 0, 0, 1, 9),
		results: fc.constantFrom(1, 1, 2, 3, 0),
		callback: fc.constantFrom(undefined, undefined, 'lost', 'doubled', 'late'),
		trouble: fc.constantFrom<Settings[]>({}, {}, {}, {}, {}, ...TROUBLES),
		/** What the parameters of the node take from the item. */
		says: fc.record({
			seconds: fc.constant(seconds),
			downloads: fc.boolean(),
			field: fc.constantFrom('data', 'picture', 'data_1'),
			// The last of these is no reference: the item is refused before anything is created for it.
			reference: fc.constantFrom('row 1', 'row 2', 0, '', 'row 3', 'row 4', {}),
			// Fields that the node puts out, too.
			...{ taskId: fc.constantFrom('task of the input', 7), state: fc.constant('SUCCESS') },
			...{ error: fc.constantFrom(undefined, 'of the input'), timedOut: fc.constant(true) },
		}),
		/** Whether the item has a file under the name that a result is to have. */
		hasFile: fc.boolean(),
	});

const items = fc.oneof(itemOf(47, QUICK), itemOf(611, [...QUICK, 70 * SECOND, 200 * SECOND]));

const batches = fc.record({
	items: fc.array(items, { minLength: 1, maxLength: 6 }),
	node: fc.record({
		onError: fc.constantFrom('stopWorkflow', 'continueRegularOutput', 'continueErrorOutput'),
		settings: fc.constantFrom({}, {}, {}, OLDER),
		ifSomeFail: fc.constantFrom('keep', 'stop'),
		maxInFlight: fc.constantFrom(10, 2),
		retryFailed: fc.constantFrom(0, 0, 1, 2),
		more: fc
			.record(
				{
					reference: fc.constant('={{ $json.reference }}'),
					downloadResults: fc.constant('={{ $json.downloads }}'),
					outputBinaryField: fc.constant('={{ $json.field }}'),
					includeInput: fc.constant(false),
				},
				{ requiredKeys: [] },
			)
			.map((more) => ({ ...more, timeout: '={{ $json.seconds }}' })),
	}),
	downloads: fc.boolean(),
	// One of the first two creates is refused, or its answer is lost: these are sent at once in each of the runs. Later
	// creates may come after the time in which things go wrong.
	requests: fc.array(
		fc.record({
			on: fc.constant('create'),
			nth: fc.nat({ max: 1 }),
			what: fc.constantFrom('answer lost', '404'),
		}),
		{ maxLength: 1 },
	),
});

type Batch = typeof batches extends fc.Arbitrary<infer T> ? T : never;

/** Lets a run come to its end. @returns all that can be told of it */
async function run({ items, node, requests, downloads }: Batch, suspendAfter: number) {
	// Each query takes the same time: in records stands when their tasks were created.
	const slowestQueryMs = 1;
	// A failed task is created again at another moment by a run that sleeps: the nth create is then that of another item.
	const hasTime = items.every(({ ms, says }) => ms < 10 * SECOND && says.seconds > 60);
	const troubles = hasTime && node.retryFailed > 0 ? [] : requests;
	const parts: PartlyHistory = {
		...{ requests: troubles, slowestQueryMs, workflow: 'one node' },
		fileSeconds: downloads ? 1 : 0,
		node: {
			...node,
			timeoutSeconds: 60,
			...{ suspendAfter, items: items.length },
			// A run that sleeps finds a failure late, and may have too little time left for another task.
			retryFailed: hasTime ? node.retryFailed : 0,
		},
	};
	const file = { mimeType: 'text/plain', fileName: 'own.txt', data: btoa('of the input') };
	const given = items.map(({ says, hasFile }) => ({
		json: says as IDataObject,
		...(hasFile && { binary: { data: file } }),
	}));
	const taskOf = (index: number, attempt: number) => {
		const { ms, failures, results, callback, trouble } = items[index]!;
		return {
			latencyMs: ms,
			resultCount: results,
			...(attempt <= failures && { outcome: 'FAILURE' as const }),
			...trouble,
			...callbackSwitches(callback),
		};
	};
	const world = await enactRun(parts, taskOf, given, async ({ time, n8n }) => {
		do {
			if (time.now > END_MS) throw new Error('The run does not end');
			await time.run(time.now + MINUTE);
		} while (n8n.isBusy);
	});
	return tell(world);
}

function tell({ n8n, service }: World) {
	const { status, sleeps, data } = n8n.rows[0]!;
	const { error } = fromStored(data).resultData;
	const own = n8n.sunk.filter(({ execution }) => execution === '1');
	const byItem = groupBy(service.tasks, ({ item }) => item);
	const told = {
		status,
		error: error?.message,
		description: error && 'description' in error ? error.description : undefined,
		/** What the nodes behind it have got, and how often they were run. */
		behind: own.map(({ node, items }) => [node, items.map(shown)]),
		creates: [...byItem].map(([item, { length }]) => `${length} for ${item}`).sort(),
		isSuspended: sleeps > 0,
	};
	let text = JSON.stringify(told);
	// The tasks of each item get names that do not depend on what else was created in between.
	for (const [item, tasks] of byItem) {
		for (const [nth, { id }] of tasks.entries())
			text = text.replaceAll(id, `task ${nth} of ${item}`);
	}
	// A run that is asleep first creates its tasks later.
	text = text.replaceAll(/"(createdAt|completedAt)":"[^"]+"/g, '"$1":"its time"');
	const named = JSON.parse(text) as typeof told;
	return { ...named, description: wordsOf(named.description) };
}

/** Why a task of a run that stops was not created anew. */
const NOT_ANEW = /(It was not created again|If it fails by chance)[^.]*\./;

/** The tasks are named in the order in which they were created, or in that of their items. */
const wordsOf = (text: unknown) =>
	String(text ?? '')
		.replace(NOT_ANEW, '')
		.split(/[,.]?\s+|[.,]$/)
		.sort();

/** An item with its files, and the index of the input item that it is linked to. */
function shown({ json, binary = {}, pairedItem }: INodeExecutionData) {
	const files = Object.entries(binary).map(([name, { data, mimeType, fileName }]) => {
		return { name, mimeType, fileName, content: Buffer.from(data, 'base64').toString() };
	});
	return { keys: Object.keys(json), json: json as IDataObject, files, pairedItem };
}

it('a run that is held, and the same run suspended at once or after a minute, put out the same items, or fail with the same words', async () => {
	/** What was there: a test that never suspends would show nothing. */
	const seen = { suspended: 0, held: 0, failed: 0, late: 0, files: 0 };
	const property = fc.asyncProperty(batches, async (batch) => {
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
	});
	await fc.assert(property, { numRuns: 40, seed: 1 });
	for (const count of Object.values(seen)) expect(count).toBeGreaterThan(0);
}, 600_000);
