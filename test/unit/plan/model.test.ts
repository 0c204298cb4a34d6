import type { IDataObject } from 'n8n-workflow';

import type { PricedModel } from '../../../nodes/MediaGeneration/service/prices';
import { createOf, image, json, planOf, refusalOf } from './planning';

/** A model as the field holds it: chosen from the list, or entered. */
const located = (mode: 'list' | 'id', value: unknown) => ({ __rl: true, mode, value });

const own: PricedModel[] = [
	{ id: 'acme/painter', priceUsd: 0.05, unit: 'task' },
	{ id: 'acme/clips', priceUsd: 0.2, unit: 'second' },
	{ id: 'acme/new', priceUsd: 0, unit: 'task' },
];

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

describe('a model of the credential', () => {
	const order = (model: string, options: IDataObject = {}) =>
		image(options, { model: located('list', model) });

	it('has its price in the estimate', async () => {
		const priced = await createOf(order('acme/painter'), undefined, { models: own });
		expect(priced.estimatedCostUsd).toBe(0.05);
		const clips = order('acme/clips', { additionalInput: '{ "duration": 4 }' });
		expect((await createOf(clips, undefined, { models: own })).estimatedCostUsd).toBe(0.8);
	});

	it('gives way to the price that the node names', async () => {
		const parameters = order('acme/painter', { pricePerTaskUsd: 0.07 });
		expect((await createOf(parameters, undefined, { models: own })).estimatedCostUsd).toBe(0.07);
	});

	it('can be kept in a budget, and is refused above it', async () => {
		const twenty = json(...Array.from({ length: 20 }, () => ({})));
		const admitted = await planOf(order('acme/painter', { maxCostUsd: 1 }), twenty, {
			models: own,
		});
		expect(admitted.items).toHaveLength(20);
		const refused = order('acme/painter', { maxCostUsd: 0.99 });
		expect((await refusalOf(refused, twenty, { models: own })).message).toBe(
			'20 tasks would cost 1 USD, which is above the limit of 0.99 USD',
		);
	});

	it('without a price says how to enter the price', async () => {
		const refused = order('acme/new', { maxCostUsd: 1 });
		const { message, description } = await refusalOf(refused, undefined, { models: own });
		expect(message).toContain("The price of model 'acme/new' is not known");
		expect(description).toMatch(
			/^To make the price known, enter the model with its price .* in the credential/,
		);
	});
});
