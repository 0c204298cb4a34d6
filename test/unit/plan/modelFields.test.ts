import type { IDataObject, IExecuteFunctions } from 'n8n-workflow';

import { executeContext } from '../../workflow/engine';
import { createOf, image, inputOf, json, planOf, refusalOf } from './planning';

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
	const value = { aspect_ratio: null, seed: '', style: '={{ $json.none }}' };
	expect(await sentOf(schema, value)).toEqual({});
	for (const empty of [{}, null]) expect(await sentOf(schema, empty)).toEqual({});
	const none = image({}, { modelFields: { mappingMode: 'defineBelow' } });
	expect(await inputOf(none)).toEqual({ prompt: 'A lighthouse' });
});

it('they lie under the fields of the panel, Additional Fields and Additional Input', async () => {
	const schema = ['prompt', 'a', 'b', 'c'].map((name) => field(name, 'string'));
	const value = { prompt: 'theirs', a: 'model', b: 'model', c: 'model' };
	const assignments = ['b', 'c'].map((name) => ({ name, type: 'string', value: 'field' }));
	const options = { additionalFields: { assignments }, additionalInput: '{ "c": "input" }' };
	expect(await sentOf(schema, value, {}, options)).toEqual({ a: 'model', b: 'field', c: 'input' });
});

const NOT_LISTED = "'aspect_ratio' is '16:10' and not in its list";
it.each<[IDataObject, string, string, RegExp]>([
	[RATIO, '16:10', NOT_LISTED, /Choose one in 'Model Fields': '1:1', '16:9'/],
	[field('seed', 'number'), 'seven', "'seed' is 'seven' and not a number", /'Model Fields'/],
	[field('style', 'string'), '={{ ["a"] }}', "'style' is a list and not a text", /'Model Fields'/],
])('what is not meant is refused before a task is created: %j %s', async (...given) => {
	const [shown, value, message, wayOut] = given;
	const error = await refusalOf(image({}, mapped([shown], { [String(shown.id)]: value })));
	expect(error.message).toBe(`The field ${message}`);
	expect(error.description).toMatch(wayOut);
});

describe('a required field', () => {
	const required = { ...RATIO, required: true };

	it('that is empty is asked for', async () => {
		const { message, description } = await refusalOf(image({}, mapped([required], {})));
		expect(message).toBe("The parameter 'aspect_ratio' is empty");
		expect(description).toContain("under 'Model Fields', or remove it there");
	});

	it('may come from Additional Fields, or be removed', async () => {
		const assignments = [{ name: 'aspect_ratio', type: 'string', value: '4:3' }];
		const sent = await sentOf([required], {}, {}, { additionalFields: { assignments } });
		expect(sent).toEqual({ aspect_ratio: '4:3' });
		expect(await sentOf([{ ...required, removed: true }], {})).toEqual({});
	});
});

describe('what was entered for another model', () => {
	const model = 'acme/painter';
	const given = (inputExample: string) => ({
		models: [{ id: model, priceUsd: 0, unit: 'task' as const, inputExample }],
	});
	const mark = (id: string): IDataObject => ({
		...{ id: `fields of ${id}`, displayName: id, display: false, removed: true },
	});
	const refusal = async (schema: IDataObject[], value: IDataObject, inputExample: string) =>
		await refusalOf(image({}, { model, ...mapped(schema, value) }), json({}), given(inputExample));
	const CLOSE = {
		message: "'Model Fields' has 'seed', which was not entered for the model 'acme/painter'",
		description: expect.stringMatching(
			/^Close the node and open it again: .*To send 'seed' all the same/,
		) as string,
	};
	const own = mark(model);
	const other = mark('acme/sketcher');

	it.each<[string, IDataObject[], IDataObject, string]>([
		['a field that its example lacks', [field('seed', 'number')], { seed: 7 }, '{ "style": "" }'],
		['the same, shown for it', [own, field('seed', 'number')], { seed: 7 }, '{ "style": "" }'],
		['a field of another kind', [other, field('seed', 'object')], { seed: '{}' }, '{ "seed": 1 }'],
		['a field of another, without an example', [other, field('seed', 'number')], { seed: 7 }, ''],
	])('is refused before the first order: %s', async (_what, schema, value, example) => {
		expect(await refusal(schema, value, example)).toMatchObject(CLOSE);
	});

	const sent = async (schema: IDataObject[], value: IDataObject, example: string) => {
		const parameters = image({}, { model, ...mapped(schema, value) });
		return (await inputOf(parameters, json({}), given(example))) as unknown;
	};

	const prompt = 'A lighthouse';
	it('is sent where the model has the same field, which an expression in Model may choose', async () => {
		const fields = [other, field('seed', 'number')];
		expect(await sent(fields, { seed: 7 }, '{ "seed": 1 }')).toEqual({ prompt, seed: 7 });
	});

	it('is no matter where nothing was entered, also in a field that the other model needs', async () => {
		const schema = [other, { ...RATIO, required: true }];
		const value = { aspect_ratio: '', seed: null as never };
		expect(await sent(schema, value, '{ "seed": 1 }')).toEqual({ prompt });
	});

	it('the lists and kinds are those of the example, and not those that the panel once showed', async () => {
		const schema = [own, RATIO, field('hd', 'boolean')];
		const painter = { properties: { aspect_ratio: { enum: ['4:3'] }, hd: { type: 'boolean' } } };
		const example = JSON.stringify(painter);
		const value = { aspect_ratio: '4:3', hd: 'false' };
		expect(await sent(schema, value, example)).toEqual({ prompt, aspect_ratio: '4:3', hd: false });
		const { message } = await refusal(schema, { aspect_ratio: '16:9' }, example);
		expect(message).toBe("The field 'aspect_ratio' is '16:9' and not in its list");
	});
});

it('the fields are read once for an item, and not for each line of its prompt', async () => {
	const lines = Array.from({ length: 50 }, (_, line) => `Prompt ${line}`).join('\n');
	const parameters = image({}, { prompt: lines, promptPerLine: true, ...mapped([RATIO], {}) });
	let reads = 0;
	const node = { parameters };
	const made = executeContext({ node, items: json({}) });
	const read = made.getNodeParameter.bind(made) as (...given: unknown[]) => unknown;
	const getNodeParameter = ((...given: unknown[]) => {
		if (given[0] === 'modelFields') reads++;
		return read(...given);
	}) as IExecuteFunctions['getNodeParameter'];
	const context = { getNodeParameter };
	expect((await planOf(parameters, json({}), { context })).items).toHaveLength(50);
	expect(reads).toBe(1);
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

describe('a name that the schema of the model does not have', () => {
	const id = 'acme/painter';
	const properties = { prompt: { type: 'string' }, aspect_ratio: { type: 'string' } };
	const modelOf = (schema: IDataObject) => ({
		...{ id, priceUsd: 0, unit: 'task' as const },
		inputExample: JSON.stringify({ type: 'object', ...schema }),
	});
	const named = (name: string) => {
		const assignments = [{ name, type: 'string', value: '16:9' }];
		return image({ additionalFields: { assignments } }, { model: id });
	};

	it('is refused before the order, and the names of the fields are named', async () => {
		const models = [modelOf({ properties })];
		const error = await refusalOf(named('aspect_ration'), json({}), { models });
		expect(error.message).toBe(`The model '${id}' has no field 'aspect_ration'`);
		expect(error.description).toContain('which has: prompt');
		const task = { resource: 'task', operation: 'create', model: id, options: {} };
		const raw = { ...task, input: '{"prompt": "A", "Aspect": "16:9"}' };
		expect((await refusalOf(raw, json({}), { models })).message).toContain("no field 'Aspect'");
	});

	it.each<[string, IDataObject, string]>([
		['it is in the schema', { properties }, 'aspect_ratio'],
		['the schema allows others', { properties, additionalProperties: true }, 'other'],
		[
			'the schema has variants',
			{ anyOf: [{ properties }, { properties: { other: {} } }] },
			'other',
		],
	])('is sent where %s', async (_what, schema, name) => {
		const models = [modelOf(schema)];
		const { items } = await planOf(named(name), json({}), { models });
		expect(items).toMatchObject([{ kind: 'create', input: { [name]: '16:9' } }]);
	});
});

describe('a placeholder model of an imported example', () => {
	const id = 'imagevendor/image-model-2-text-to-image';

	it('is refused where the credential has models, and not this one', async () => {
		const models = [{ id: 'acme/painter', priceUsd: 0.05, unit: 'task' as const }];
		const error = await refusalOf(image({}, { model: id }), json({}), { models });
		expect(error.message).toContain(
			`'${id}' is a placeholder, and your credential does not have it`,
		);
		expect(error.description).toContain("Choose a model of your account in 'Model'");
	});

	it('is a model like others where the credential has it, or has none', async () => {
		const models = [{ id, priceUsd: 0.05, unit: 'task' as const }];
		for (const more of [{ models }, {}]) {
			expect((await createOf(image({}, { model: id }), json({}), more)).model).toBe(id);
		}
	});
});
