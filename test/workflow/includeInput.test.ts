import type { IDataObject, INodeExecutionData } from 'n8n-workflow';

import { type Ran, type TestNode, toolContext } from './engine';
import { field, hasErrorOutput, IMAGE_MODEL, imageNode, keepsGoing, stage, text } from './support';
import { passTime } from './time';
import { OWN_NAMES } from '../../nodes/MediaGeneration/report/outputItems';
import { MediaGeneration } from '../../nodes/MediaGeneration/MediaGeneration.node';
import { useProcessedData } from './processedData';

useProcessedData();
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
