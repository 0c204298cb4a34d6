import type { IDataObject } from 'n8n-workflow';

import type { CreatePlan } from '../../../nodes/MediaGeneration/plan/planTypes';
import { image, json, planOf, refusalOf } from './planning';

const perLine = (prompt: string, options: IDataObject = {}, more: IDataObject = {}) =>
	image(options, { prompt, promptPerLine: true, ...more });

const createsOf = async (...given: Parameters<typeof planOf>) =>
	(await planOf(...given)).items as CreatePlan[];

it('each line is a task of its own of its item, in their order, trimmed and without the empty ones', async () => {
	const rows = json(
		{ prompts: 'A red bird\n\n  A blue bird  \r\n \nA cat\n' },
		{ prompts: 'A dog' },
	);
	const creates = await createsOf(perLine('={{ $json.prompts }}'), rows);
	expect(
		creates.map(({ itemIndex, taskIndex, input }) => [itemIndex, taskIndex, input.prompt]),
	).toEqual([
		[0, 0, 'A red bird'],
		[0, 1, 'A blue bird'],
		[0, 2, 'A cat'],
		[1, 0, 'A dog'],
	]);
});

it('every task has the other fields of the item', async () => {
	const image_url = 'https://m.example.com/1.png';
	const video = { resource: 'video', imageUrl: image_url, durationSeconds: 5 };
	const creates = await createsOf(perLine('a\nb', { additionalInput: '{ "seed": 7 }' }, video));
	expect(creates.map(({ input }) => input)).toEqual(
		['a', 'b'].map((prompt) => ({ prompt, duration: 5, image_url, seed: 7 })),
	);
});

it('the budget counts every line', async () => {
	const { message } = await refusalOf(perLine('a\nb\nc', { maxCostUsd: 0.2 }));
	expect(message).toBe('3 tasks would cost 0.24 USD, which is above the limit of 0.2 USD');
});

it('a prompt without a line that says something is refused', async () => {
	expect((await refusalOf(perLine(' \n '))).message).toBe("The parameter 'Prompt' is empty");
});
