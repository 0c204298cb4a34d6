import type { IDataObject } from 'n8n-workflow';

import { createOf, image, json, refusalOf } from './planning';

/** A model as the field holds it: chosen from the list, or entered. */
const located = (mode: 'list' | 'id', value: unknown) => ({ __rl: true, mode, value });

describe('the model', () => {
	const given = { model: 'acme/painter' };

	it.each<[string, unknown]>([
		['chosen from the list', located('list', 'acme/painter')],
		['entered', located('id', 'acme/painter')],
		['of an expression in the field', located('id', '={{ $json.model }}')],
		['of an expression in place of the field', '={{ $json.model }}'],
		['written as a text', ' acme/painter '],
	])('%s is sent by its identifier', async (_how, model) => {
		const plan = await createOf(image({}, { model } as IDataObject), json(given));
		expect(plan.model).toBe('acme/painter');
	});

	it.each([located('id', ''), located('list', ''), located('id', '={{ $json.none }}'), ''])(
		'is refused by the node if it is empty (%j)',
		async (model) => {
			const { message, description } = await refusalOf(image({}, { model }));
			expect(message).toBe("The parameter 'Model' is empty");
			expect(description).toMatch(/from the list, or enter its identifier/);
		},
	);
});
