import type { IBinaryData, IDataObject, INodeExecutionData } from 'n8n-workflow';

import { ItemFile } from '../../../nodes/MediaGeneration/plan/itemFile';
import type { CreatePlan } from '../../../nodes/MediaGeneration/plan/taskPlan';
import { planRun } from '../../../nodes/MediaGeneration/plan/planRun';
import { systemClock } from '../../../nodes/MediaGeneration/shared/clock';
import { ItemError } from '../../../nodes/MediaGeneration/shared/itemError';
import { API_KEY, executeContext } from '../../workflow/engine';
import { caught } from '../support';

/** The input of the one item: an image unless the parameters say something else. */
async function inputOf(
	options: IDataObject,
	item: INodeExecutionData = { json: {} },
	parameters: IDataObject = { prompt: 'A lighthouse' },
): Promise<IDataObject> {
	const context = executeContext({
		node: { parameters: { ...parameters, options } },
		credential: { baseUrl: 'https://api.example.com', apiKey: API_KEY },
		items: [item],
	});
	const account = { apiKey: API_KEY, baseUrl: 'https://api.example.com' };
	const [plan] = (await planRun(context, account, systemClock)).items;
	if (plan instanceof ItemError) throw plan;
	return (plan as CreatePlan).input;
}

const fields = (...assignments: IDataObject[]) => ({ additionalFields: { assignments } });
const field = (name: string, type: string, value: unknown) =>
	({ name, type, value }) as IDataObject;
const rawTask = { resource: 'task', operation: 'create', model: 'any/model' };

describe('additional fields', () => {
	const addedOf = async (...given: Parameters<typeof inputOf>) => {
		const { prompt, ...added } = await inputOf(...given);
		expect(prompt).toBeDefined();
		return added;
	};

	const TRICKY = '"quoted" \'single\' \\back\nline 🎬 {{ braces }} ${x}';

	it('arrive as they are: quotes, line breaks, emoji, numbers and lists', async () => {
		const item = { json: { text: TRICKY, urls: ['a', 'b'], size: { w: 1 }, seed: 7, hd: false } };
		expect(
			await addedOf(
				fields(
					field('style', 'string', '={{ $json.text }}'),
					field('urls', 'array', '={{ $json.urls }}'),
					field('size', 'object', '={{ $json.size }}'),
					field('seed', 'number', '={{ $json.seed }}'),
					field('hd', 'boolean', '={{ $json.hd }}'),
				),
				item,
			),
		).toEqual({ style: TRICKY, urls: ['a', 'b'], size: { w: 1 }, seed: 7, hd: false });
	});

	it.each([
		['number', '7', 7],
		['number', '-0.5', -0.5],
		['number', '1e3', 1000],
		['boolean', 'true', true],
		['boolean', 0, false],
		['array', '["a", 1]', ['a', 1]],
		['object', '{ "a": 1 }', { a: 1 }],
		['string', 7, '7'],
		['string', true, 'true'],
		['string', '', ''],
		['number', null, null],
	])('of type %s with the value %j become %j', async (type, value, sent) => {
		expect(await addedOf(fields(field('x', type, value)))).toEqual({ x: sent });
	});

	it('without a value in the item are not sent', async () => {
		expect(await addedOf(fields(field('seed', 'number', '={{ $json.seed }}')))).toEqual({});
	});

	it.each([
		['number', 'many', "'many' and not a number"],
		['number', '', "'' and not a number"],
		['number', 'Infinity', "'Infinity' and not a number"],
		['number', [7], 'a list and not a number'],
		['number', true, "'true' and not a number"],
		['boolean', 'perhaps', "'perhaps' and not true or false"],
		['array', 'a, b', "'a, b' and not a list"],
		['array', { a: 1 }, 'an object and not a list'],
		['object', [1], 'a list and not an object'],
		['object', '7', "'7' and not an object"],
		['string', ['a'], 'a list and not a text'],
		['string', { a: 1 }, 'an object and not a text'],
	])('of type %s with the value %j are refused, naming the field', async (type, value, says) => {
		const item = { json: { value } as IDataObject };
		const error = await caught(() => inputOf(fields(field('x', type, '={{ $json.value }}')), item));
		expect(error).toMatchObject({
			message: `The field 'x' is ${says}`,
			description: expect.stringContaining("'Additional Fields'") as string,
		});
	});

	it('without a name are refused', async () => {
		const { message } = await caught(() => inputOf(fields(field(' ', 'string', 'a'))));
		expect(message).toBe("One of the 'Additional Fields' has no name");
	});

	it('nest by dots and places of lists, and change nothing of the item before', async () => {
		const item = { json: { input: { prompt: 'p', style: { ink: true, list: [1, 2] } } } };
		const before = structuredClone(item.json);
		const options = fields(
			field('style.name', 'string', 'oil'),
			field('style.list[1]', 'number', '3'),
			field('frames[1].url', 'string', 'u'),
			field('year.2026', 'number', '1'),
		);
		expect(await inputOf(options, item, { ...rawTask, input: '={{ $json.input }}' })).toEqual({
			prompt: 'p',
			style: { ink: true, list: [1, 3], name: 'oil' },
			frames: [null, { url: 'u' }],
			year: { 2026: 1 },
		});
		expect(item.json).toEqual(before);
	});

	it('cannot reach what every object has from JavaScript', async () => {
		await inputOf(
			fields(field('__proto__.hd', 'boolean', true), field('constructor.x', 'string', 'y')),
		);
		expect({}).not.toHaveProperty('hd');
		expect(Object).not.toHaveProperty('x');
	});

	it('win over the fields above, and additional input over both', async () => {
		const options = {
			...fields(field('prompt', 'string', 'b'), field('seed', 'number', 1)),
			additionalInput: '{ "seed": 2 }',
		};
		expect(await inputOf(options)).toEqual({ prompt: 'b', seed: 2 });
	});

	it.each(['{}', '', '{\n  "prompt": ""\n}'])('are enough where the input is %j', async (input) => {
		const options = fields(field('text', 'string', 'a'));
		expect(await inputOf(options, undefined, { ...rawTask, input })).toEqual({ text: 'a' });
	});

	it('are offered where the input is empty', async () => {
		const error = await caught(() =>
			inputOf({}, undefined, { ...rawTask, input: '{"prompt":""}' }),
		);
		expect(error).toMatchObject({
			message: "The parameter 'Input' is empty",
			description: expect.stringContaining("'Additional Fields'") as string,
		});
	});
});

describe('files', () => {
	const stored = (id: string, more: Partial<IBinaryData> = {}): IBinaryData => ({
		id: `filesystem-v2:${id}`,
		data: 'filesystem-v2',
		mimeType: 'image/png',
		fileName: `${id}.png`,
		bytes: 3000,
		...more,
	});
	const item: INodeExecutionData = {
		json: {},
		binary: {
			data: stored('one'),
			last: stored('two'),
			sound: stored('s', { mimeType: 'audio/mpeg' }),
		},
	};
	const files = (...file: Array<[string, unknown]>) => ({
		files: {
			file: file.map(([inputField, binaryPropertyName]) => ({ inputField, binaryPropertyName })),
		} as IDataObject,
	});
	/** The sources of the files of a field, in their order. */
	const sources = (value: unknown) =>
		[value].flat().map((file) => (file instanceof ItemFile ? file.name : file));

	it('go into the fields that they are for, of any type', async () => {
		const input = await inputOf(
			files(['first_frame', 'data'], ['last_frame', 'last'], ['audio.track', 'sound']),
			item,
		);
		expect(input).toEqual({
			prompt: 'A lighthouse',
			first_frame: expect.any(ItemFile),
			last_frame: expect.any(ItemFile),
			audio: { track: expect.any(ItemFile) },
		});
	});

	it('become a list in their order, where several have one field', async () => {
		const { images } = await inputOf(files(['images', 'last'], ['images', 'data, last']), item);
		expect(sources(images)).toEqual(['last', 'data', 'last']);
	});

	it('are a list also of one, where the name ends with []', async () => {
		const { images } = await inputOf(files(['images[]', 'last']), item);
		expect(images).toEqual([expect.any(ItemFile)]);
	});

	it('may be a binary object from an expression, or several', async () => {
		const { one, all } = await inputOf(
			files(['one', '={{ $binary.last }}'], ['all', '={{ $binary }}']),
			item,
		);
		expect(sources(one)).toEqual(['two.png']);
		expect(sources(all)).toEqual(['one.png', 'two.png', 's.png']);
	});

	it('may be a binary object of the reference image, too', async () => {
		const { image_url } = await inputOf({}, item, {
			resource: 'video',
			prompt: 'Waves',
			imageSource: 'binary',
			binaryPropertyName: '={{ $binary.data }}',
		});
		expect(sources(image_url)).toEqual(['one.png']);
	});

	it('win over the fields above, and additional fields over them', async () => {
		const options = {
			...files(['prompt', 'data'], ['x', 'data']),
			...fields(field('x', 'number', 1)),
		};
		expect(await inputOf(options, item)).toEqual({ prompt: expect.any(ItemFile), x: 1 });
	});

	it('may be additional fields, of the type binary', async () => {
		const { frame } = await inputOf(fields(field('frame', 'binary', 'last')), item);
		expect(sources(frame)).toEqual(['last']);
	});

	it.each([
		['a field that the item has not', files(['x', 'photo']), 'photo'],
		['no field', files(['x', ' ']), "The parameter 'Input Data Field Name' is empty"],
		['no input field', files(['', 'data']), "One of the 'Files' has no name"],
		['a number', files(['x', 7]), "The parameter 'Input Data Field Name' is empty"],
	])('are refused before anything is sent with %s', async (_what, options, says) => {
		const { message } = await caught(() => inputOf(options, item));
		expect(message).toContain(says);
	});

	it('are refused where one is empty', async () => {
		const empty = { json: {}, binary: { data: stored('none', { bytes: 0 }) } };
		const { message } = await caught(() => inputOf(files(['x', 'data']), empty));
		expect(message).toBe("The file 'data' is empty (0 bytes)");
	});

	it('kept in memory are reached by name alone, and the message says so', async () => {
		const inMemory = { json: {}, binary: { data: { data: 'iVBORw==', mimeType: 'image/png' } } };
		const error = await caught(() => inputOf(files(['x', '={{ $binary.data }}']), inMemory));
		expect(error).toMatchObject({
			message: "The content of the file 'file' cannot be reached by this expression",
			description: expect.stringContaining("'Input Data Field Name'") as string,
		});
	});

	it.each([
		[{ bytes: 3000 }, 3000],
		[{ bytes: undefined, fileSize: '1.2 MB' }, undefined],
		[{ bytes: undefined, id: undefined, data: 'iVBORw==' }, 4],
	])('say their size without being read: %j', async (more, bytes) => {
		const data = Object.fromEntries(
			Object.entries({ ...stored('x'), ...more }).filter(([, value]) => value !== undefined),
		) as unknown as IBinaryData;
		expect(new ItemFile('data', data).bytes).toBe(bytes);
	});
});
