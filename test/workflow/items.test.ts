import type { IDataObject, INodeExecutionData } from 'n8n-workflow';
import { MediaGeneration } from '../../nodes/MediaGeneration/MediaGeneration.node';
import { OWN_NAMES } from '../../nodes/MediaGeneration/report/outputItems';
import { callbackToken } from '../../nodes/MediaGeneration/shared/addresses';
import type { Settings } from '../service/settings';
import { type Ran, type TestNode, toolContext, TRIGGER, TRIGGER_PATH } from './engine';
import { useProcessedData } from './processedData';
import {
	field,
	hasErrorOutput,
	IMAGE_MODEL,
	imageNode,
	item,
	jsonOf,
	keepsGoing,
	prompts,
	SECOND,
	stage,
	text,
} from './support';
import { passTime } from './time';

useProcessedData();
/** What an item has: its input, the names that are the node's, its reference. */

const on = stage();

const file = (name: string) => ({
	data: Buffer.from(name).toString('base64'),
	mimeType: 'text/plain',
	fileName: `${name}.txt`,
});

const ANOTHER = 'of-another-node';

/** A row, with fields of the names of this node's own and a file. */
const row = (id: number, simulate: IDataObject = {}): INodeExecutionData => ({
	json: {
		...{ row: id, prompt: `Prompt ${id}`, nested: { id }, simulate, delivery: 'express' },
		...{ taskId: ANOTHER, state: ANOTHER, model: ANOTHER, record: { of: ANOTHER } },
		...{ error: ANOTHER, timedOut: true, dryRun: true },
	},
	binary: { note: file(`note-${id}`), data: file(`data-${id}`) },
});
const failing = (id: number) => row(id, { outcome: 'FAILURE', failureMessage: 'no such colour' });
const refused = (id: number) => row(id, { createStatus: 400 });

/** What is to come out of a row whose task succeeded. */
const beside = (id: number) => ({
	json: {
		...{ row: id, prompt: `Prompt ${id}`, nested: { id }, state: 'SUCCESS', model: IMAGE_MODEL },
		// An order may have a delivery of its own.
		delivery: 'express',
		...{ taskId: on.taskIds[id], input: { prompt: `Prompt ${id}` } },
		record: { createdAt: expect.any(String) as string },
	},
	binary: { note: file(`note-${id}`), data: file(`data-${id}`) },
	pairedItem: { item: id },
});

/** There is no account at this address. */
const nowhere = () => ({ credential: { ...on.credential, baseUrl: 'nowhere' } });

describe('the fields and files of the input', () => {
	it("go on beside each result: the node's own fields win, and what tells how another run ended does not go on", async () => {
		const { output } = await on.run(imageNode(), [row(0), row(1)]);
		expect(output).toMatchObject([beside(0), beside(1)]);
		for (const { json } of output) {
			for (const name of ['error', 'timedOut', 'dryRun']) expect(json).not.toHaveProperty(name);
		}
		expect(Object.keys(output[0]?.json ?? {}).at(-1)).toBe('record');
	});

	it('are no part of what the hint tells of this run, and stay behind where the switch is off', async () => {
		const item = row(0);
		item.json.failedTaskIds = ['task-of-another-run'];
		const { hints } = await on.run(imageNode(), [item]);
		expect(hints[0]).toMatch(/^1 task, about/);
		const { output } = await on.run(imageNode({ includeInput: false }), [row(0)]);
		expect(output[0]?.json).not.toHaveProperty('row');
		expect(output[0]).not.toHaveProperty('binary');
	});

	it('go on with each of several results, and give way to a download of the same name', async () => {
		const several = row(0, { resultCount: 2 });
		const options = { downloadResults: true, splitResults: true };
		const { output } = await on.run(imageNode(options), [several, row(1)]);
		expect(field(output, 'row')).toEqual([0, 0, 1]);
		expect(field(output, 'resultIndex')).toEqual([0, 1, 0]);
		const data = { mimeType: 'image/png' };
		const notes = [0, 0, 1].map((id) => file(`note-${id}`));
		expect(output).toMatchObject(notes.map((note) => ({ binary: { data, note } })));
	});

	it.each(['get', 'wait'])('go on with Task: %s, one item for each task', async (operation) => {
		await on.run(imageNode(), [row(0), row(1)]);
		const parameters = { resource: 'task', operation, taskId: '={{ $json.ids }}' };
		const item = { json: { row: 7, ids: on.taskIds, model: 'mine' }, binary: row(7).binary };
		const { output } = await on.run({ parameters }, [item as INodeExecutionData]);
		// This operation puts out no model of its own.
		expect(output).toMatchObject(
			on.taskIds.map((taskId) => ({
				json: { row: 7, taskId, model: 'mine' },
				binary: { note: file('note-7') },
			})),
		);
	});

	it('do not go to an agent, which gets the few fields that it can use', async () => {
		const node = imageNode({}, { type: 'mediaGenerationTool', parameters: { prompt: 'A sea' } });
		const tool = toolContext(on.workflow(node, [row(0)]), 'agent');
		const [output] = (await passTime(new MediaGeneration().execute.call(tool))) ?? [];
		expect(output?.[0]?.json).not.toHaveProperty('row');
		expect(output?.[0]?.json).toMatchObject({ taskId: on.taskIds[0] });
	});
});

describe("the node's own names", () => {
	/** An item as an earlier node of this kind leaves it: its task, its price, and its pictures. */
	const stale = (simulate: IDataObject = {}): INodeExecutionData => ({
		json: {
			...{ prompt: 'A sea', simulate, mine: 7 },
			...Object.fromEntries(
				Object.values(OWN_NAMES)
					.flat()
					.map((name) => [name, ANOTHER]),
			),
		},
		binary: {
			...{ data: file('still'), data_1: file('second'), data_2: file('third') },
			...{ photo: file('photo'), photo_1: file('photo-1'), data_x: file('x'), data_0: file('0') },
		},
	});
	/** What is ANOTHER in an item that came out, and the names of its files. */
	const left = ({ json, binary = {} }: INodeExecutionData) => ({
		stale: Object.keys(json).filter((name) => json[name] === ANOTHER),
		files: Object.entries(binary).flatMap(([name, { fileName = '' }]) =>
			fileName.endsWith('.txt') ? name : [],
		),
	});
	const OTHERS = ['photo', 'photo_1', 'data_x', 'data_0'];

	it.each<[string, IDataObject, IDataObject, TestNode]>([
		['succeeded', {}, {}, {}],
		['succeeded with two files', { resultCount: 2 }, {}, {}],
		['failed', { outcome: 'FAILURE' }, {}, keepsGoing],
		['was refused', { createStatus: 400 }, {}, keepsGoing],
		['was only shown', {}, { dryRun: true }, {}],
		['has no prompt', {}, {}, { ...keepsGoing, parameters: { prompt: '={{ "" }}' } }],
	])('hold nothing of the input in an item that %s', async (_what, simulate, options, more) => {
		const node = imageNode({ downloadResults: true, ...options }, more);
		const { output } = await on.run(node, [stale(simulate)]);
		expect(output.map(left)).toEqual([{ stale: [], files: OTHERS }]);
		expect(field(output, 'mine')).toEqual([7]);
	});

	it('hold no file of the input on the error output, where n8n itself adds the fields of the input', async () => {
		const node = imageNode({ downloadResults: true }, hasErrorOutput);
		const { errors } = await on.run(node, [stale({ outcome: 'FAILURE' })]);
		expect(errors.map((item) => left(item).files)).toEqual([OTHERS]);
		expect(errors[0]?.json.details).toMatchObject({ state: 'FAILURE', taskId: on.taskIds[0] });
	});

	it('are those of another file field where it was named so', async () => {
		const options = { downloadResults: true, outputBinaryField: 'photo' };
		const { output } = await on.run(imageNode(options, keepsGoing), [stale({ createStatus: 400 })]);
		expect(output.map(left)).toEqual([
			{ stale: [], files: ['data', 'data_1', 'data_2', 'data_x', 'data_0'] },
		]);
	});

	it('leave a task that is read what its order was, and nothing that tells of its end', async () => {
		const parameters = { resource: 'task', operation: 'get', taskId: on.finishedTask() };
		const { output } = await on.run({ parameters }, [stale()]);
		expect(output.map((item) => left(item).stale)).toEqual([
			['model', 'input', 'estimatedCostUsd', 'failedTaskIds'],
		]);
	});
});

describe('an item that fails', () => {
	it.each([{}, keepsGoing])("has its input beside this node's own reason (%j)", async (more) => {
		const { output } = await on.run(imageNode({}, more), [row(0), failing(1), refused(2)]);
		expect(field(output, 'row')).toEqual([0, 1, 2]);
		expect(field(output, 'error')).toEqual([undefined, text('colour'), text('400')]);
		const json = { taskId: on.taskIds[1], state: 'FAILURE', row: 1 };
		expect(output[1]).toMatchObject({ json, binary: row(1).binary });
	});

	it('has nothing of another task where none was created', async () => {
		const another = {
			...{ taskId: ANOTHER, state: 'SUCCESS', resultUrls: [ANOTHER], creditsConsumed: 8 },
			...{ estimatedCostUsd: 0.08, failedTaskIds: [ANOTHER], record: { of: ANOTHER } },
			...{ resultUrl: ANOTHER, resultIndex: 0, timedOut: true, dryRun: true, advice: ANOTHER },
		};
		const item = { json: { ...refused(0).json, ...another } };
		const { output } = await on.run(imageNode({}, keepsGoing), [item]);
		expect(output[0]?.json).toMatchObject({ row: 0, error: text('400') });
		expect(JSON.stringify(output)).not.toContain(ANOTHER);
		const left = Object.keys(another).filter((name) => name in (output[0]?.json ?? {}));
		expect(left.filter((name) => name !== 'advice')).toEqual([]);
	});

	it('keeps the id of the task to wait for where nobody could read it', async () => {
		const taskId = '={{ $json.taskId }}';
		const parameters = { resource: 'task', operation: 'wait', taskId };
		const { output } = await on.run({ ...keepsGoing, parameters }, [row(0)], nowhere());
		expect(output[0]?.json).toMatchObject({ row: 0, taskId: ANOTHER });
	});

	it("has the files of its input on n8n's error output, and the fields as they are without the switch", async () => {
		const withIt = await on.run(imageNode({}, hasErrorOutput), [failing(0), refused(1)]);
		on.service.clear();
		const without = await on.run(imageNode({ includeInput: false }, hasErrorOutput), [
			failing(0),
			refused(1),
		]);
		const shape = ({ errors }: Ran) => errors.map(({ json }) => Object.keys(json));
		expect(shape(withIt)).toEqual(shape(without));
		expect(field(withIt.errors, 'row')).toEqual([0, 1]);
		expect(withIt.errors).toMatchObject([{ binary: row(0).binary }, { binary: row(1).binary }]);
		expect(without.errors[0]).not.toHaveProperty('binary');
		expect(withIt.output).toEqual([]);
	});
});

const webhookUrls = () => on.tasks.map(({ webhookUrl }) => webhookUrl);
const gaps = (moments: number[]) => moments.slice(1).map((at, index) => at - (moments[index] ?? 0));
/** The fields of a task that was only created. */
const PENDING = { state: 'PENDING', resultUrls: [], creditsConsumed: null };

it('an image has exactly the fields of the contract, and with Return Immediately leaves with the answer to the create, reads nothing and asks for no callback', async () => {
	const returned = await on.run({ parameters: { prompt: 'Sea', completion: 'return' } });
	expect(on.requests('GET')).toEqual([]);
	expect(webhookUrls()).toStrictEqual([undefined]);
	const { output } = await on.run({ parameters: { prompt: 'Sea', downloadResults: false } });
	const [first, taskId = ''] = on.taskIds;
	const common = { model: IMAGE_MODEL, input: { prompt: 'Sea' }, estimatedCostUsd: 0.08 };
	const pending = { taskId: first, ...common, ...PENDING, record: {} };
	expect(returned.output).toEqual([{ json: pending, pairedItem: { item: 0 } }]);
	const resultUrls = [`${on.service.mediaUrl}/media/${taskId}/1.png`];
	const at = expect.stringContaining('2026') as unknown;
	const record = { createdAt: at, completedAt: at } as IDataObject;
	const json = { taskId, ...common, state: 'SUCCESS', resultUrls, creditsConsumed: 8, record };
	expect(output).toEqual([{ json, pairedItem: { item: 0 } }]);
});

describe('a batch', () => {
	it('comes out in input order, though its tasks finish in another, and has none of them read more often than the interval says', async () => {
		const items = Array.from({ length: 20 }, (_, index) =>
			item(`Picture ${index}`, { latencyMs: 500 + ((index * 7919) % 20) * SECOND }),
		);
		const { output } = await on.images(items, { maxInFlight: 20 });
		expect(output).toMatchObject(
			items.map(({ prompt }, item) => ({ json: { input: { prompt } }, pairedItem: { item } })),
		);
		const all = on.taskIds.flatMap((id) => gaps(on.requests('GET', id).map(({ at }) => at)));
		expect(Math.min(...all)).toBeGreaterThanOrEqual(2 * SECOND);
	});
});

it.each<[string, TestNode[], object]>([
	['of this workflow', [TRIGGER], {}],
	['whose URL was pasted', [], { callbackUrl: `https://n8n.test${TRIGGER_PATH}` }],
])(
	'Notify a Trigger has the service call the trigger %s with the right token, which the items do not show',
	async (_which, triggers, more) => {
		const node = { parameters: { completion: 'trigger', ...more } };
		const { output } = await on.images(['a', 'b'], {}, node, { triggers });
		const token = callbackToken(TRIGGER_PATH, on.service.apiKey);
		expect(webhookUrls()).toEqual(Array(2).fill(`https://n8n.test${TRIGGER_PATH}?token=${token}`));
		expect(jsonOf(output)).toMatchObject(
			on.taskIds.map((taskId) => ({ taskId, ...PENDING, record: {} })),
		);
		expect(on.requests('GET')).toEqual([]);
		expect(JSON.stringify(output)).not.toContain(token);
	},
);

describe('a reference', () => {
	/** Orders two images, each with a reference. */
	const order = async (completion: string, options: IDataObject = {}, node: TestNode = {}) => {
		const all = { reference: '={{ "of " + $json.prompt }}', ...options };
		return await on.run(
			imageNode(all, { ...node, parameters: { completion } }),
			prompts('a', 'b'),
			{
				triggers: [TRIGGER],
			},
		);
	};

	it.each<[string, string, Settings, IDataObject]>([
		['with its result', 'wait', {}, {}],
		['with an item that was refused', 'wait', { createStatus: 400 }, {}],
		['with a task that a trigger waits for', 'trigger', {}, {}],
		['with a task that nobody waits for', 'return', {}, {}],
	])('comes out %s', async (_what, completion, settings, options) => {
		on.service.configure(settings);
		const { output: items } = await order(completion, options, keepsGoing);
		expect(field(items, 'reference')).toEqual(['of a', 'of b']);
		// What was refused has no task to stand beside.
		if (settings.createStatus !== undefined) return;
		expect(Object.keys(items[0]?.json ?? {}).join()).toContain('input,reference');
	});

	it.each([7, 'x'.repeat(500)])('may be %j', async (reference) => {
		const { output } = await order('return', { reference });
		expect(field(output, 'reference')).toEqual(Array(2).fill(String(reference)));
	});

	it.each([
		["={{ 'x'.repeat(501) }}", "The parameter 'Reference' has 501 characters"],
		...['[1, 2]', 'Number("x")'].map((value) => [
			`={{ ${value} }}`,
			"The parameter 'Reference' is not a text",
		]),
	])('%s is refused before a task is created', async (reference, message) => {
		const { error } = await order('trigger', { reference });
		expect(error?.message).toBe(`${message} (item 1)`);
		expect(on.creates).toEqual([]);
	});
});

it('three lines of a prompt make three pictures, in their order, each linked to the one item', async () => {
	const prompt = 'A red bird\n\nA blue bird\nA green bird';
	const node = imageNode(
		{ downloadResults: true },
		{ parameters: { prompt, promptPerLine: true } },
	);
	const { output, hints } = await on.run(node, [{ json: { row: 7 } }]);
	expect(field(output, 'input')).toEqual([
		{ prompt: 'A red bird' },
		{ prompt: 'A blue bird' },
		{ prompt: 'A green bird' },
	]);
	expect(field(output, 'row')).toEqual([7, 7, 7]);
	expect(output.map(({ pairedItem }) => pairedItem)).toEqual(Array(3).fill({ item: 0 }));
	expect(output.map(({ binary }) => binary?.data?.fileName)).toEqual([
		expect.stringMatching(/^1-1-a-red-bird-.*png/),
		expect.stringMatching(/^1-2-a-blue-bird-.*png/),
		expect.stringMatching(/^1-3-a-green-bird-.*png/),
	]);
	expect(hints.join()).toContain('3 tasks, about 0.24 USD, 24 credits.');
});
