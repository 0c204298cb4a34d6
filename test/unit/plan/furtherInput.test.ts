import type { IBinaryData, IDataObject, INodeExecutionData } from 'n8n-workflow';

import { InputFile } from '../../../nodes/MediaGeneration/plan/inputFile';
import { image, inputOf, json, refusalOf } from './planning';

const fields = (...assignments: Array<[name: string, type: string, value: unknown]>) => ({
	additionalFields: {
		assignments: assignments.map(([name, type, value]) => ({ name, type, value })),
	} as IDataObject,
});
const files = (...file: Array<[inputField: string, binaryPropertyName: unknown]>) => ({
	files: {
		file: file.map(([inputField, name]) => ({ inputField, binaryPropertyName: name })),
	} as IDataObject,
});
const raw = (input: string, options: IDataObject = {}) => ({
	resource: 'task',
	operation: 'create',
	model: 'any/model',
	input,
	options,
});

describe('additional fields', () => {
	const addedOf = async (options: IDataObject, item: IDataObject = {}) => {
		const { prompt, ...added } = await inputOf(image(options), json(item));
		expect(prompt).toBeDefined();
		return added;
	};

	const TRICKY = '"quoted" \'single\' \\back\nline 🎬 {{ braces }} ${x}';

	it('arrive as they are: quotes, line breaks, emoji, numbers and lists', async () => {
		const item = { text: TRICKY, urls: ['a', 'b'], size: { w: 1 }, seed: 7, hd: false };
		const options = fields(
			['style', 'string', '={{ $json.text }}'],
			['urls', 'array', '={{ $json.urls }}'],
			['size', 'object', '={{ $json.size }}'],
			['seed', 'number', '={{ $json.seed }}'],
			['hd', 'boolean', '={{ $json.hd }}'],
			['none', 'number', '={{ $json.none }}'],
			['unsaid', 'string', '={{ $json.none }}'],
		);
		const { text, ...sent } = item;
		expect(await addedOf(options, item)).toEqual({ style: text, ...sent });
	});

	it.each([
		['number', '7', 7],
		['boolean', 'true', true],
		['boolean', 0, false],
		['array', '["a", 1]', ['a', 1]],
		['object', '{ "a": 1 }', { a: 1 }],
		['string', 7, '7'],
		['string', '', ''],
		['number', null, null],
	])('of type %s with the value %j become %j', async (type, value, sent) => {
		expect(await addedOf(fields(['x', type, value]))).toEqual({ x: sent });
	});

	it.each([
		['number', 'many', "'many' and not a number"],
		['number', '', "'' and not a number"],
		['number', 'Infinity', "'Infinity' and not a number"],
		['number', [7], 'a list and not a number'],
		['boolean', 'perhaps', "'perhaps' and not true or false"],
		['boolean', [], 'a list and not true or false'],
		['array', 'a, b', "'a, b' and not a list"],
		['array', { a: 1 }, 'an object and not a list'],
		['object', [1], 'a list and not an object'],
		['object', '7', "'7' and not an object"],
		['string', ['a'], 'a list and not a text'],
		['string', NaN, "'NaN' and not a text"],
	])('of type %s with the value %j are refused, naming the field', async (type, value, says) => {
		const options = fields(['x', type, '={{ $json.value }}']);
		const error = await refusalOf(image(options), json({ value } as IDataObject));
		expect(error.message).toBe(`The field 'x' is ${says}`);
		expect(error.description).toContain("'Additional Fields'");
	});

	it.each([
		['object', '={{ { width: Number("a") } }}'],
		['array', '={{ [Number("a")] }}'],
	])('of type %s are refused with a number in them that is none', async (type, value) => {
		const { message, description } = await refusalOf(image(fields(['size', type, value])));
		expect(message).toBe("The parameter 'size' is not valid JSON");
		expect(description).toContain("is 'NaN' and not a number");
	});

	it('nest by dots and places of lists, and change nothing of the item before', async () => {
		const item = { input: { prompt: 'p', style: { ink: true, list: [1, 2] } } };
		const before = structuredClone(item);
		const options = fields(
			['style.name', 'string', 'oil'],
			['style.list[1]', 'number', '3'],
			['frames[1].url', 'string', 'u'],
			['year.2026', 'number', '1'],
		);
		expect(await inputOf(raw('={{ $json.input }}', options), json(item))).toEqual({
			prompt: 'p',
			style: { ink: true, list: [1, 3], name: 'oil' },
			frames: [null, { url: 'u' }],
			year: { 2026: 1 },
		});
		expect(item).toEqual(before);
	});

	it('cannot reach what every object has from JavaScript', async () => {
		await addedOf(fields(['__proto__.hd', 'boolean', true], ['constructor.x', 'string', 'y']));
		expect({}).not.toHaveProperty('hd');
		expect(Object).not.toHaveProperty('x');
	});

	it('win over the fields above, and additional input over both', async () => {
		const options = {
			...fields(['prompt', 'string', 'b'], ['seed', 'number', 1]),
			additionalInput: '{ "seed": 2 }',
		};
		expect(await inputOf(image(options))).toEqual({ prompt: 'b', seed: 2 });
	});

	it.each(['{}', '', '{\n  "prompt": ""\n}'])('are enough where the input is %j', async (input) => {
		expect(await inputOf(raw(input, fields(['text', 'string', 'a'])))).toEqual({ text: 'a' });
	});

	it('are not enough where the expression of the input gives nothing', async () => {
		const given = raw('={{ $json.none }}', fields(['ratio', 'string', '16:9']));
		expect((await refusalOf(given)).message).toBe("The parameter 'Input' is empty");
	});
});

it.each<[IDataObject[string]]>([
	[{ seed: 7 }],
	['{ "seed": 7 }'],
	[{ assignments: { name: 'seed', value: 7 } }],
])('additional fields that are no rows are not left out of a paid task: %j', async (value) => {
	const { message } = await refusalOf(image({ additionalFields: value }));
	expect(message).toBe("The parameter 'Additional Fields' is not a list of rows");
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
	const video = {
		resource: 'video',
		prompt: 'A lighthouse',
		imageSource: 'binary',
		binaryPropertyName: '={{ $binary.data }}',
	};

	/** An input, in which the names of its files stand for them. */
	const named = (value: unknown): unknown => {
		if (value instanceof InputFile) return value.name;
		if (Array.isArray(value)) return value.map(named);
		if (typeof value !== 'object' || value === null) return value;
		return Object.fromEntries(Object.entries(value).map(([name, entry]) => [name, named(entry)]));
	};

	const partly = files(
		['all', 'last'],
		['all[]', 'data'],
		['frames[]', 'data'],
		['frames', 'last'],
	);
	const expressions = files(['one', '={{ $binary.last }}'], ['all', '={{ $binary }}']);
	const all = ['one.png', 'two.png', 's.png'];
	const over = { ...files(['prompt', 'data'], ['x', 'data']), ...fields(['x', 'number', 1]) };

	it.each<[string, IDataObject, object]>([
		['go into fields of any depth', image(files(['a.b', 'sound'])), { a: { b: 'sound' } }],
		[
			'become a list in their order, where several have one field',
			image(files(['images', 'last'], ['images', 'data, last'])),
			{ images: ['last', 'data', 'last'] },
		],
		[
			'become one list, where only some of the names end with []',
			image(partly),
			{ all: ['last', 'data'], frames: ['data', 'last'] },
		],
		['are a list also of one, by []', image(files(['images[]', 'last'])), { images: ['last'] }],
		['may come from an expression, or several', image(expressions), { one: 'two.png', all }],
		['may be a binary object of the reference image, too', video, { image_url: 'one.png' }],
		[
			'win over the fields above, additional fields over them',
			image(over),
			{ prompt: 'data', x: 1 },
		],
	])('%s', async (_what, parameters, input) => {
		expect(named(await inputOf(parameters, [item]))).toEqual({ prompt: 'A lighthouse', ...input });
	});

	const withData = (data: IBinaryData) => ({ json: {}, binary: { data } });
	const nothing = withData(stored('none', { bytes: 0 }));
	const inMemory = withData({ data: 'iVBORw==', mimeType: 'image/png' });
	const FIELD_NAME = "The parameter 'Input Data Field Name' is empty";
	const noName = (what: string) => `One of the '${what}' has no name`;
	type Case = [says: string, options: IDataObject, wayOut?: string, item?: INodeExecutionData];

	it.each<Case>([
		...['photo', '__proto__', 'constructor'].map((name): Case => [
			`The item has no binary field '${name}'`,
			files(['x', name]),
		]),
		[FIELD_NAME, files(['x', ' ']), "'data', 'last', 'sound'"],
		[FIELD_NAME, files(['x', 7])],
		[noName('Files'), files(['', 'data']), 'Name in the Model'],
		[noName('Additional Fields'), fields([' ', 'string', 'a']), "'Name'"],
		...[nothing, withData({ data: '', mimeType: 'image/png' })].map((empty): Case => [
			"The file 'data' is empty (0 bytes)",
			files(['x', 'data']),
			'',
			empty,
		]),
		[
			"The content of the file 'file' cannot be reached by this expression",
			files(['x', '={{ $binary.data }}']),
			"'Input Data Field Name'",
			inMemory,
		],
	])('are refused before anything is sent: %s', async (says, options, wayOut = '', of = item) => {
		const { message, description } = await refusalOf(image(options), [of]);
		expect(message).toContain(says);
		expect(description ?? '').toContain(wayOut);
	});

	it.each([
		[{ bytes: 3000 }, 3000],
		[{ bytes: undefined, fileSize: '1.2 MB' }, undefined],
		[{ bytes: undefined, id: undefined, data: 'iVBORw==' }, 4],
	])('say their size without being read: %j', (more, bytes) => {
		expect(new InputFile('data', { ...stored('x'), ...more } as IBinaryData).bytes).toBe(bytes);
	});
});
