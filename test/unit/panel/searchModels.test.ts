import type { ILoadOptionsFunctions } from 'n8n-workflow';

import { searchModels } from '../../../nodes/MediaGeneration/panel/models';

/** The list of the field *Model* with these models in the credential. */
async function listOf(models: unknown, filter?: string) {
	const context = { getCredentials: async () => await Promise.resolve({ models }) };
	const { results } = await searchModels.call(context as unknown as ILoadOptionsFunctions, filter);
	return results;
}

const own = {
	model: [
		{ id: 'acme/painter', priceUsd: 0.05, unit: 'task' },
		{ id: 'acme/clips', priceUsd: 0, unit: 'second' },
	],
};

it('the list has the models of the credential, with the prices that are known', async () => {
	expect(await listOf(own)).toEqual([
		{ name: 'acme/painter (0.05 USD per task)', value: 'acme/painter' },
		{ name: 'acme/clips', value: 'acme/clips' },
	]);
});

it.each([undefined, {}, { model: [] }])(
	'the list has the models of the specification, called placeholders, if the credential has none (%j)',
	async (models) => {
		const image = 'imagevendor/image-model-2-text-to-image';
		const video = 'videovendor/video-model-2-mini';
		expect(await listOf(models)).toEqual([
			{ name: `Placeholder: ${image}`, value: image },
			{ name: `Placeholder: ${video}`, value: video },
		]);
	},
);

it('the list is empty if another service is chosen, and the credential has no models', async () => {
	const context = { getCredentials: async () => await Promise.resolve({ service: 'kie' }) };
	const { results } = await searchModels.call(context as unknown as ILoadOptionsFunctions);
	expect(results).toEqual([]);
});

it.each([
	['PAINT', ['acme/painter']],
	[' clips ', ['acme/clips']],
	['acme', ['acme/painter', 'acme/clips']],
	['other', []],
])('a search for %j finds %j', async (filter, found) => {
	expect((await listOf(own, filter)).map(({ value }) => value)).toEqual(found);
});
