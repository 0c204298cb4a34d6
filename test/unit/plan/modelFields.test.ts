import type { IDataObject } from 'n8n-workflow';

import { image, inputOf, json, planOf, refusalOf } from './planning';

/** A field as n8n stores what the panel has shown. */
const field = (id: string, type: string, more: IDataObject = {}) => ({
	...{ id, displayName: id, type, required: false, defaultMatch: false, display: true },
	...{ removed: false, ...more },
});
const list = (id: string, ...values: unknown[]) =>
	field(id, 'options', { options: values.map((value) => ({ name: String(value), value })) });

const mapped = (schema: IDataObject[], value: IDataObject | null): IDataObject => ({
	modelFields: { mappingMode: 'defineBelow', value, matchingColumns: [], schema },
});

const sentOf = async (
	schema: IDataObject[],
	value: IDataObject | null,
	item: IDataObject = {},
	options: IDataObject = {},
) => {
	const { prompt, ...sent } = await inputOf(image(options, mapped(schema, value)), json(item));
	expect(prompt).toBe('A lighthouse');
	return sent;
};

const RATIO = list('aspect_ratio', '1:1', '16:9');

it('the values are sent under their names, with their types', async () => {
	const schema = [
		RATIO,
		list('seconds', 5, 10),
		field('seed', 'number'),
		field('hd', 'boolean'),
		field('loras', 'array'),
		field('style', 'object'),
	];
	const value = {
		aspect_ratio: '16:9',
		seconds: '={{ $json.length }}',
		seed: '7',
		hd: '={{ $json.hd }}',
		loras: '["a", "b"]',
		style: '{ "name": "oil" }',
	};
	expect(await sentOf(schema, value, { length: '10', hd: 'true' })).toEqual({
		...{ aspect_ratio: '16:9', seconds: 10, seed: 7, hd: true },
		...{ loras: ['a', 'b'], style: { name: 'oil' } },
	});
});

it('an empty field is left out, and so is what the item does not have', async () => {
	const schema = [RATIO, field('seed', 'number'), field('style', 'string')];
	expect(
		await sentOf(schema, { aspect_ratio: null, seed: '', style: '={{ $json.none }}' }),
	).toEqual({});
	for (const empty of [{}, null]) expect(await sentOf(schema, empty)).toEqual({});
	expect(await inputOf(image({}, { modelFields: { mappingMode: 'defineBelow' } }))).toEqual({
		prompt: 'A lighthouse',
	});
});

it('they lie under the fields of the panel, Additional Fields and Additional Input', async () => {
	const schema = ['prompt', 'a', 'b', 'c'].map((name) => field(name, 'string'));
	const value = { prompt: 'theirs', a: 'model', b: 'model', c: 'model' };
	const assignments = ['b', 'c'].map((name) => ({ name, type: 'string', value: 'field' }));
	const options = { additionalFields: { assignments }, additionalInput: '{ "c": "input" }' };
	expect(await sentOf(schema, value, {}, options)).toEqual({ a: 'model', b: 'field', c: 'input' });
});

it.each<[string, IDataObject, unknown, string, RegExp]>([
	[
		'not in its list',
		RATIO,
		'16:10',
		"The field 'aspect_ratio' is '16:10' and not in its list",
		/Choose one in 'Model Fields': '1:1', '16:9'/,
	],
	[
		'of another type',
		field('seed', 'number'),
		'seven',
		"The field 'seed' is 'seven' and not a number",
		/'Model Fields'/,
	],
	[
		'a list for a text',
		field('style', 'string'),
		'={{ ["a"] }}',
		"The field 'style' is a list and not a text",
		/'Model Fields'/,
	],
])(
	'a value that is %s is refused before a task is created',
	async (_what, shown, value, message, wayOut) => {
		const parameters = image({}, mapped([shown], { [String(shown.id)]: value as string }));
		expect(await refusalOf(parameters)).toMatchObject({
			message,
			description: expect.stringMatching(wayOut) as string,
		});
	},
);

describe('a required field', () => {
	const required = { ...RATIO, required: true };

	it('that is empty is asked for', async () => {
		expect(await refusalOf(image({}, mapped([required], {})))).toMatchObject({
			message: "The parameter 'aspect_ratio' is empty",
			description: expect.stringContaining("under 'Model Fields', or remove it there") as string,
		});
	});

	it('may come from Additional Fields, or be removed', async () => {
		const assignments = [{ name: 'aspect_ratio', type: 'string', value: '4:3' }];
		expect(await sentOf([required], {}, {}, { additionalFields: { assignments } })).toEqual({
			aspect_ratio: '4:3',
		});
		expect(await sentOf([{ ...required, removed: true }], {})).toEqual({});
	});
});

describe('a name that the example of the model does not have', () => {
	const model = 'acme/painter';
	const painter = { id: model, priceUsd: 0, unit: 'task' as const };
	const warningsOf = async (inputExample: string, name: string, mode: 'manual' | 'trigger') => {
		const assignments = [{ name, type: 'string', value: '16:9' }];
		const parameters = image({ additionalFields: { assignments } }, { model });
		const models = [{ ...painter, inputExample }];
		return (await planOf(parameters, json({}), { models, mode })).warnings;
	};
	const example = '{ "prompt": "", "aspect_ratio": "1:1", "seed": 1 }';

	it('is told to whoever runs the node by hand', async () => {
		expect(await warningsOf(example, 'aspect_ration', 'manual')).toEqual([
			"The input example of 'acme/painter' has no field 'aspect_ration' (item 1). Its fields: prompt, aspect_ratio, seed.",
		]);
	});

	it.each<[string, string, 'manual' | 'trigger']>([
		[example, 'aspect_ratio', 'manual'],
		[example, 'aspect_ration', 'trigger'],
		['', 'aspect_ration', 'manual'],
		['{ broken', 'aspect_ration', 'manual'],
	])('is no matter otherwise (%j, %s, %s)', async (inputExample, name, mode) => {
		expect(await warningsOf(inputExample, name, mode)).toEqual([]);
	});
});

describe('a placeholder model of an imported example', () => {
	const id = 'imagevendor/image-model-2-text-to-image';

	it('is refused where the credential has models, and not this one', async () => {
		const models = [{ id: 'acme/painter', priceUsd: 0.05, unit: 'task' as const }];
		expect(await refusalOf(image(), json({}), { models })).toMatchObject({
			message: `The model '${id}' is a placeholder, and your credential does not have it`,
			description: expect.stringContaining("Choose a model of your account in 'Model'") as string,
		});
	});

	it('is a model like others where the credential has it, or has none', async () => {
		const models = [{ id, priceUsd: 0.05, unit: 'task' as const }];
		expect(await inputOf(image(), json({}), { models })).toEqual({ prompt: 'A lighthouse' });
		expect(await inputOf(image())).toEqual({ prompt: 'A lighthouse' });
	});
});
