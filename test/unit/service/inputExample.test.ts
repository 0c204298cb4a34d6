import {
	type InputField,
	readInputExample,
} from '../../../nodes/MediaGeneration/service/inputExample';
import { caught } from '../support';

const read = (value: unknown) => readInputExample(JSON.stringify(value));
const named = (fields: InputField[]) => fields.map(({ name }) => name);

describe('an example', () => {
	it('gives its fields with their types and values', () => {
		const example = {
			prompt: 'A lighthouse',
			aspect_ratio: '16:9',
			seed: 7,
			hd: false,
			loras: ['a', 'b'],
			style: { name: 'oil' },
			mask: null,
		};
		expect(read(example)).toEqual([
			{ name: 'prompt', type: 'string', isRequired: false, value: 'A lighthouse' },
			{ name: 'aspect_ratio', type: 'string', isRequired: false, value: '16:9' },
			{ name: 'seed', type: 'number', isRequired: false, value: 7 },
			{ name: 'hd', type: 'boolean', isRequired: false, value: false },
			{ name: 'loras', type: 'array', isRequired: false, value: '["a","b"]' },
			{ name: 'style', type: 'object', isRequired: false, value: '{"name":"oil"}' },
			{ name: 'mask', type: 'string', isRequired: false },
		]);
	});

	it("does not hand on somebody else's files, nor what only stands for a value", () => {
		const values = [
			'https://example.com/cat.png',
			['https://example.com/cat.png'],
			{ url: 'data:image/png;base64,aa' },
			'string',
			'<your prompt>',
			'',
		];
		for (const value of values) expect(read({ x: value })[0]).not.toHaveProperty('value');
		expect(read({ x: 'a string of pearls' })[0]).toHaveProperty('value');
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

	it('gives lists, defaults, descriptions and what is required', () => {
		const properties = {
			prompt: { type: 'string', description: ' What to show ', minLength: 3 },
			aspect_ratio: { type: 'string', enum: ['1:1', '16:9'], default: '1:1', title: 'Shape' },
			num_images: { type: 'integer', default: 1, maximum: 4 },
			duration: { enum: [5, 10] },
			hd: { type: ['boolean', 'null'] },
			sizes: { type: 'array', items: { type: 'number' }, default: [1] },
			style: { type: 'object', properties: { name: { type: 'string' } } },
			request_id: { type: 'string', readOnly: true },
		};
		expect(read(schema(properties, { required: ['prompt', 'aspect_ratio'] }))).toEqual([
			{ name: 'prompt', type: 'string', isRequired: true, description: 'What to show' },
			{
				...{ name: 'aspect_ratio', type: 'string', isRequired: true, description: 'Shape' },
				...{ choices: ['1:1', '16:9'], value: '1:1' },
			},
			{ name: 'num_images', type: 'number', isRequired: false, value: 1 },
			{ name: 'duration', type: 'number', isRequired: false, choices: [5, 10] },
			{ name: 'hd', type: 'boolean', isRequired: false },
			{ name: 'sizes', type: 'array', isRequired: false, value: '[1]' },
			{ name: 'style', type: 'object', isRequired: false },
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
			{ name: 'size', choices: ['square', 'wide'], value: 'square', description: 'Shape' },
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

it.each([undefined, '', ' \n', '{}'])('%j has no fields', (text) => {
	expect(readInputExample(text)).toEqual([]);
});

it.each([
	["{ prompt: 'a' }", 'is not valid JSON', /double quotes.*The parser says/],
	['{ "a": 1, … }', 'is not valid JSON', /no comments/],
	['["a"]', 'is not a JSON object', /from the first \{/],
	['{ "openapi": "3.1.0", "paths": {} }', 'describes a whole API', /Copy only the schema/],
])('%s is refused in words', async (text, message, description) => {
	const error = await caught(async () => await Promise.resolve(readInputExample(text)));
	expect(error).toMatchObject({
		message,
		description: expect.stringMatching(description) as string,
	});
});
