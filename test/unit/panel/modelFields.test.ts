import type { IDataObject, ILoadOptionsFunctions } from 'n8n-workflow';

import { loadModelFields } from '../../../nodes/MediaGeneration/panel/models';

const painter = {
	required: ['prompt', 'aspect_ratio'],
	type: 'object',
	properties: {
		prompt: { type: 'string' },
		image_url: { type: 'string' },
		aspect_ratio: {
			enum: ['1:1', '16:9'],
			default: '1:1',
			description: `Shape\nof ${'x'.repeat(200)}`,
		},
		seed: { type: 'integer' },
		steps: { type: 'integer', default: 20 },
		hd: { type: 'boolean', default: true },
		fit: { enum: ['crop', 'pad'] },
	},
};

/** What the panel shows for a model whose example in the credential this is. */
async function fieldsOf(inputExample: string, parameters: IDataObject = {}) {
	const given: IDataObject = { resource: 'image', model: 'acme/painter', ...parameters };
	const context = {
		getCredentials: async () =>
			await Promise.resolve({ models: { model: [{ id: 'acme/painter', inputExample }] } }),
		getCurrentNodeParameter: (name: string) => given[name],
	};
	return await loadModelFields.call(context as unknown as ILoadOptionsFunctions);
}

const NO_EXAMPLE = expect.stringContaining('enter an example of this model') as string;

/** What is stored with the fields, and is not shown. */
const MARK = {
	...{ id: 'fields of acme/painter', displayName: 'acme/painter', display: false },
	...{ defaultMatch: false, required: false, removed: true },
};

it('the fields have their lists and descriptions, but for those that the panel has itself, and no value', async () => {
	const { fields } = await fieldsOf(JSON.stringify(painter));
	const all = { defaultMatch: false, display: true, required: false, removed: true };
	expect(fields).toEqual([
		{ ...all, id: 'image_url', displayName: 'image_url', type: 'string' },
		{
			...{ ...all, id: 'aspect_ratio', required: true, removed: false, type: 'options' },
			displayName: `aspect_ratio (required): Shape of ${'x'.repeat(66)}…`,
			options: [
				{ name: '1:1', value: '1:1' },
				{ name: '16:9', value: '16:9' },
			],
		},
		{ ...all, id: 'seed', displayName: 'seed', type: 'number' },
		{ ...all, id: 'steps', displayName: 'steps', type: 'number' },
		{
			...{ ...all, id: 'hd', displayName: 'hd', type: 'options' },
			options: [
				{ name: '(Not Sent)', value: '' },
				{ name: 'true', value: true },
				{ name: 'false', value: false },
			],
		},
		{
			...{ ...all, id: 'fit', displayName: 'fit', removed: false, type: 'options' },
			options: [
				{ name: '(Not Sent)', value: '' },
				{ name: 'crop', value: 'crop' },
				{ name: 'pad', value: 'pad' },
			],
		},
		MARK,
	]);
	const video = await fieldsOf(JSON.stringify(painter), { resource: 'video' });
	const ids = video.fields.map(({ id }) => id);
	expect(ids).toEqual(['aspect_ratio', 'seed', 'steps', 'hd', 'fit', MARK.id]);
});

it('no example and no schema gives a value, so that looking at a node changes nothing that is ordered', async () => {
	const example = '{ "num_images": 4, "seed": 42, "hd": true, "style": { "name": "oil" } }';
	for (const text of [example, JSON.stringify(painter)]) {
		const { fields } = await fieldsOf(text);
		for (const field of fields) {
			expect(field).not.toHaveProperty('defaultValue');
			// n8n gives a boolean the value false.
			expect(field.type).not.toBe('boolean');
		}
	}
});

it.each<[string, string, IDataObject]>([
	['no example', '', {}],
	['a model that is not in the list', '{ "seed": 1 }', { model: 'other/model' }],
	['no field beside the prompt', '{ "prompt": "" }', {}],
])('%s has no fields, and the panel says how to get them', async (_what, example, parameters) => {
	const { fields, emptyFieldsNotice } = await fieldsOf(example, parameters);
	expect(fields).toEqual([]);
	expect(emptyFieldsNotice).toEqual(NO_EXAMPLE);
});

it('an example that cannot be read is told in words', async () => {
	const { fields, emptyFieldsNotice } = await fieldsOf('{ prompt }');
	expect(fields).toEqual([]);
	expect(emptyFieldsNotice).toMatch(
		/^The input example of 'acme\/painter' in the credential is not valid JSON\. .*double quotes/,
	);
});
