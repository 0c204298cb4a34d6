import type { IDataObject } from 'n8n-workflow';

import { SPECIFICATION } from '../../../nodes/MediaGeneration/service/services';
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

	it.each<[string, IDataObject]>([
		['entered', image({}, { model: located('id', '={{ $json.none }}') })],
		['in place of the field', image({}, { model: '={{ $json.none }}' })],
	])(
		'is refused if an expression gives nothing: nobody pays for a guess (%s)',
		async (_how, given) => {
			const { message, description } = await refusalOf(given);
			expect(message).toBe("The expression in 'Model' gives nothing");
			expect(description).toMatch(/from the list, or enter its identifier/);
		},
	);
});

describe('where Model is empty', () => {
	const clips = { id: 'acme/clips', priceUsd: 0.1, unit: 'second' as const };
	const painter = { id: 'acme/painter', priceUsd: 0.05, unit: 'task' as const };
	const models = [clips, painter, { ...painter, id: 'acme/other' }];
	const video = { resource: 'video', operation: 'generate', imageSource: 'none' };
	const modelOf = async (more: IDataObject, given = models) =>
		(await createOf(image({}, more), json({}), { models: given })).model;

	it.each([located('id', ''), located('list', ''), ''])(
		"the credential's first model of the kind makes the result (%j)",
		async (model) => {
			expect(await modelOf({ model })).toBe('acme/painter');
			expect(await modelOf({ ...video, model })).toBe('acme/clips');
		},
	);

	it('and that of the specification if the credential has no models', async () => {
		expect(await modelOf({}, [])).toBe('imagevendor/image-model-2-text-to-image');
		expect(await modelOf(video, [])).toBe('videovendor/video-model-2-mini');
	});

	it.each([
		[{}, [clips], 'by the task, as an image is'],
		[video, [painter], 'by the second, as a video is'],
	])(
		'the item is refused if the credential has models of another kind only',
		async (more, given, paid) => {
			const error = await refusalOf(image({}, more), json({}), { models: given });
			expect(error.message).toBe(
				`The parameter 'Model' is empty, and no model of the credential is paid ${paid}`,
			);
		},
	);

	it('the item is refused if the credential has another service, and no models', async () => {
		const service = { ...SPECIFICATION, create: '/predictions' };
		const error = await refusalOf(image(), json({}), { service });
		expect(error.message).toMatch(/^The parameter 'Model' is empty, and no model/);
	});

	it('a task of any kind is refused', async () => {
		const task = { resource: 'task', operation: 'create', input: '{ "seed": 7 }', model: '' };
		expect(await refusalOf(image({}, task), json({}), { models })).toMatchObject({
			message: "The parameter 'Model' is empty",
		});
	});
});
