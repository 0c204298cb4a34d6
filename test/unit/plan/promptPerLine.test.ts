import type { IDataObject } from 'n8n-workflow';

import type { CreatePlan } from '../../../nodes/MediaGeneration/plan/planTypes';
import { image, json, planOf, refusalOf } from './planning';

const perLine = (prompt: string, options: IDataObject = {}, more: IDataObject = {}) =>
	image(options, { prompt, promptPerLine: true, ...more });

const createsOf = async (...given: Parameters<typeof planOf>) =>
	(await planOf(...given)).items as CreatePlan[];

const promptsOf = (creates: CreatePlan[]) => creates.map(({ input }) => input.prompt);

it('each line is a task of its own, all of the one item, in their order', async () => {
	const creates = await createsOf(perLine('A red bird\n\n  A blue bird  \r\n \nA green bird\n'));
	expect(promptsOf(creates)).toEqual(['A red bird', 'A blue bird', 'A green bird']);
	expect(creates.map(({ itemIndex, part }) => [itemIndex, part])).toEqual([
		[0, 0],
		[0, 1],
		[0, 2],
	]);
});

it('each item has lines of its own', async () => {
	const rows = json({ prompts: 'a\nb' }, { prompts: 'c' });
	const creates = await createsOf(perLine('={{ $json.prompts }}'), rows);
	expect(promptsOf(creates)).toEqual(['a', 'b', 'c']);
	expect(creates.map(({ itemIndex, part }) => [itemIndex, part])).toEqual([
		[0, 0],
		[0, 1],
		[1, 0],
	]);
});

it('every task has the other fields of the item', async () => {
	const video = { resource: 'video', imageUrl: 'https://m.example.com/1.png', durationSeconds: 5 };
	const creates = await createsOf(perLine('a\nb', { additionalInput: '{ "seed": 7 }' }, video));
	expect(creates.map(({ input }) => input)).toEqual(
		['a', 'b'].map((prompt) => ({
			prompt,
			duration: 5,
			image_url: 'https://m.example.com/1.png',
			seed: 7,
		})),
	);
});

it('the budget counts every line', async () => {
	const { message } = await refusalOf(perLine('a\nb\nc', { maxCostUsd: 0.2 }));
	expect(message).toBe('3 tasks would cost 0.24 USD, which is above the limit of 0.2 USD');
});

it('without the switch the lines are one prompt, to the letter', async () => {
	const creates = await createsOf(perLine('a\n b ', {}, { promptPerLine: false }));
	expect(promptsOf(creates)).toEqual(['a\n b ']);
});

it.each([' \n ', ''])(
	'a prompt without a line that says something is refused (%j)',
	async (prompt) => {
		expect((await refusalOf(perLine(prompt))).message).toBe("The parameter 'Prompt' is empty");
	},
);

it('a switch whose expression gives nothing is refused, and not guessed', async () => {
	const parameters = perLine('a\nb', {}, { promptPerLine: '={{ $json.none }}' });
	expect((await refusalOf(parameters)).message).toBe(
		"The expression in 'One Image per Line' gives nothing",
	);
});
