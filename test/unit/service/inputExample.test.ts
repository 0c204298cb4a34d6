import {
	type InputField,
	readInputExample,
} from '../../../nodes/MediaGeneration/service/inputExample';
import { caught } from '../support';

const read = (value: unknown) => readInputExample(JSON.stringify(value));
const named = (fields: InputField[]) => fields.map(({ name }) => name);

describe('an example', () => {
	it('gives its fields with their types, and no value', () => {
		const example = {
			prompt: 'A lighthouse',
			aspect_ratio: '16:9',
			num_images: 4,
			hd: false,
			loras: ['a', 'b'],
			style: { name: 'oil' },
			mask: null,
		};
		const usual = { isRequired: false, isUsual: true };
		expect(read(example)).toEqual([
			{ name: 'prompt', type: 'string', ...usual },
			{ name: 'aspect_ratio', type: 'string', ...usual },
			{ name: 'num_images', type: 'number', ...usual },
			{ name: 'hd', type: 'boolean', ...usual },
			{ name: 'loras', type: 'array', ...usual },
			{ name: 'style', type: 'object', ...usual },
			{ name: 'mask', type: 'string', ...usual },
		]);
	});

	it('may have comments, and commas behind the last entries, as documentation has them', () => {
		const text = `{
			// What to draw
			"prompt": "https://a/b // no comment /* nor this */", /* at most
			500 characters */
			"sizes": [1, 2, ], // a list
			"quote": "\\"// ,]",
		}`;
		expect(named(readInputExample(text))).toEqual(['prompt', 'sizes', 'quote']);
	});

	it('may be the body of a whole request', () => {
		expect(named(read({ model: 'a/b', input: { seed: 1 }, webhook_url: 'https://x' }))).toEqual([
			'seed',
		]);
		expect(named(read({ input: { seed: 1 }, strength: 2 }))).toEqual(['input', 'strength']);
	});
});

describe('a JSON Schema', () => {
	const schema = (properties: object, more: object = {}) => ({
		type: 'object',
		properties,
		...more,
	});

	it('gives lists, descriptions and what is required, and no default', () => {
		const properties = {
			prompt: { type: 'string', description: ' What to show ', minLength: 3 },
			aspect_ratio: { type: 'string', enum: ['1:1', '16:9'], default: '1:1', title: 'Shape' },
			num_images: { type: 'integer', default: 4, maximum: 4 },
			duration: { enum: [5, 10] },
			hd: { type: ['boolean', 'null'] },
			sizes: { type: 'array', items: { type: 'number' }, default: [1] },
			style: { type: 'object', properties: { name: { type: 'string' } } },
			request_id: { type: 'string', readOnly: true },
		};
		const needed = { isRequired: true, isUsual: true, isOfAll: true };
		const further = { isRequired: false, isUsual: false, isOfAll: true };
		expect(read(schema(properties, { required: ['prompt', 'aspect_ratio'] }))).toEqual([
			{ name: 'prompt', type: 'string', ...needed, description: 'What to show' },
			{
				...{ name: 'aspect_ratio', type: 'string', ...needed, description: 'Shape' },
				choices: ['1:1', '16:9'],
			},
			{ name: 'num_images', type: 'number', ...further },
			{ name: 'duration', type: 'number', ...further, isUsual: true, choices: [5, 10] },
			{ name: 'hd', type: 'boolean', ...further },
			{ name: 'sizes', type: 'array', ...further },
			{ name: 'style', type: 'object', ...further },
		]);
	});

	it('is followed to its definitions and variants, as generators write them', () => {
		const properties = {
			size: { allOf: [{ $ref: '#/$defs/Size' }], default: 'square', description: 'Shape' },
			quality: { anyOf: [{ $ref: '#/$defs/Quality' }, { type: 'null' }] },
			mode: { oneOf: [{ const: 'fast', title: 'Fast' }, { const: 'fine' }] },
			shape: { anyOf: [{ type: 'object' }, { type: 'string', enum: ['a', 'b'] }] },
			again: { $ref: '#/properties/again' },
			lost: { $ref: '#/nowhere' },
		};
		const $defs = {
			Size: { type: 'string', enum: ['square', 'wide'], title: 'Size' },
			Quality: { type: 'string', enum: ['low', 'high'] },
		};
		expect(read(schema(properties, { $defs }))).toMatchObject([
			{ name: 'size', choices: ['square', 'wide'], description: 'Shape' },
			{ name: 'quality', choices: ['low', 'high'] },
			{ name: 'mode', choices: ['fast', 'fine'] },
			{ name: 'shape', choices: ['a', 'b'] },
			{ name: 'again', type: 'string' },
			{ name: 'lost', type: 'string' },
		]);
	});

	it('may refer to the input, be put together, or be of a whole request', () => {
		const seed = schema({ seed: { type: 'integer' } }, { required: ['seed'] });
		const steps = schema({ steps: { type: 'integer' } }, { required: ['steps'] });
		expect(named(read({ $ref: '#/$defs/Input', $defs: { Input: seed } }))).toEqual(['seed']);
		const both = read({ allOf: [seed, steps] });
		expect(both).toMatchObject([
			{ name: 'seed', isRequired: true },
			{ name: 'steps', isRequired: true },
		]);
		expect(named(read(schema({ model: { type: 'string' }, input: seed })))).toEqual(['seed']);
	});
});

describe('an OpenAPI document', () => {
	const Shape = { type: 'string', enum: ['1:1', '16:9'] };
	const Input = {
		type: 'object',
		properties: { prompt: { type: 'string' }, shape: { $ref: '#/components/schemas/Shape' } },
	};
	const document = (schemas: object) => read({ openapi: '3.1.0', components: { schemas } });

	it('has the fields of its schema Input, or of the only schema that is called so', () => {
		const fields = [{ name: 'prompt' }, { name: 'shape', choices: ['1:1', '16:9'] }];
		expect(document({ Output: {}, OtherInput: {}, Input, Shape })).toMatchObject(fields);
		expect(document({ Output: {}, PainterInput: Input, Shape })).toMatchObject(fields);
		const definitions = { PainterInput: { properties: { seed: {} } } };
		expect(named(read({ swagger: '2.0', definitions }))).toEqual(['seed']);
	});
});

it.each([undefined, '', ' \n', '{}'])('%j has no fields', (text) => {
	expect(readInputExample(text)).toEqual([]);
});

it.each([
	["{ prompt: 'a' }", 'is not valid JSON', /double quotes.*The parser says/],
	['{ "a": 1, … }', 'is not valid JSON', /no '…'/],
	['["a"]', 'is not a JSON object', /from the first \{/],
	[
		'{ "openapi": "3.1.0", "components": { "schemas": { "AInput": {}, "BInput": {} } } }',
		"is an OpenAPI document without one schema 'Input'",
		/Copy only the schema/,
	],
])('%s is refused in words', async (text, message, description) => {
	const error = await caught(async () => await Promise.resolve(readInputExample(text)));
	expect(error).toMatchObject({
		message,
		description: expect.stringMatching(description) as string,
	});
});
