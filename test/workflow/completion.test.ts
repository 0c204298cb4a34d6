import type { IDataObject } from 'n8n-workflow';

import { callbackToken } from '../../nodes/MediaGeneration/callback/callbackToken';
import { register } from '../../nodes/MediaGeneration/callback/triggerUrl';
import { hookContext, TRIGGER, TRIGGER_PATH } from './engine';
import { descriptionOf, field, IMAGE_MODEL, imageNode, prompts, stage } from './support';

const on = stage();

const completing = (completion: string, more: IDataObject = {}) =>
	imageNode({}, { parameters: { completion, ...more } });

describe('Return Immediately', () => {
	it('puts the items out with the answer to the create, and reads nothing', async () => {
		const { output } = await on.run(
			{ parameters: { prompt: 'A lighthouse', completion: 'return' } },
			undefined,
		);
		const [taskId = ''] = on.taskIds;
		expect(output).toEqual([
			{
				json: {
					taskId,
					state: 'PENDING',
					resultUrls: [],
					creditsConsumed: null,
					model: IMAGE_MODEL,
					input: { prompt: 'A lighthouse' },
					record: { taskId },
					estimatedCostUsd: 0.08,
				},
				pairedItem: { item: 0 },
			},
		]);
		expect(on.requests('GET')).toEqual([]);
	});

	it('asks for no callback', async () => {
		await on.run(completing('return'), prompts('a'));
		expect([...on.service.tasks.values()].map(({ webhookUrl }) => webhookUrl)).toEqual([undefined]);
	});

	it('takes no time to speak of for a batch', async () => {
		on.service.configure({ latencyMs: 60_000 });
		const startedAt = Date.now();
		const { output } = await on.run(completing('return'), prompts(...'abcdefghijklmnopqrst'));
		expect(field(output, 'taskId')).toEqual(on.taskIds);
		expect(Date.now() - startedAt).toBeLessThan(1000);
	});
});

describe('Notify a Trigger', () => {
	const PRODUCTION_URL = `https://n8n.test${TRIGGER_PATH}`;

	/** The static data of a workflow whose triggers were activated. */
	const activated = (...triggers: Array<{ id: string; webhookId?: string }>) => {
		const staticData = {};
		for (const trigger of triggers) {
			const node = { ...TRIGGER, ...trigger };
			register(hookContext({ node, credential: on.credential, staticData }).hook);
		}
		return { staticData };
	};

	const webhookUrls = () => [...on.service.tasks.values()].map(({ webhookUrl }) => webhookUrl);
	const signed = () => `${PRODUCTION_URL}?token=${callbackToken(TRIGGER_PATH, on.service.apiKey)}`;

	beforeEach(() => on.service.configure({ callbackLost: true }));

	it('has the service call back at the trigger of this workflow, with the right token', async () => {
		await on.run(completing('trigger'), prompts('a', 'b'), activated({ id: 'trigger' }));
		expect(webhookUrls()).toEqual([signed(), signed()]);
	});

	it('has it call back at a trigger whose URL was pasted', async () => {
		await on.run(completing('trigger', { callbackUrl: PRODUCTION_URL }), prompts('a'));
		expect(webhookUrls()).toEqual([signed()]);
	});

	it('lets the items leave at once, as they were created', async () => {
		const { output } = await on.run(
			completing('trigger'),
			prompts('a'),
			activated({ id: 'trigger' }),
		);
		const [taskId] = on.taskIds;
		expect(output).toMatchObject([
			{
				json: {
					taskId,
					state: 'PENDING',
					resultUrls: [],
					creditsConsumed: null,
					record: { taskId },
				},
			},
		]);
		expect(on.requests('GET')).toEqual([]);
	});

	it('shows the token in no output', async () => {
		const { output } = await on.run(
			completing('trigger'),
			prompts('a'),
			activated({ id: 'trigger' }),
		);
		expect(JSON.stringify(output)).not.toContain(callbackToken(TRIGGER_PATH, on.service.apiKey));
	});

	it.each([
		['there is no trigger', [], 'No active Media Generation Trigger'],
		[
			'there is more than one',
			[{ id: 'a' }, { id: 'b', webhookId: 'other' }],
			'more than one Media Generation Trigger',
		],
	])('creates nothing where %s', async (_what, triggers, message) => {
		const ran = await on.run(completing('trigger'), prompts('a', 'b'), activated(...triggers));
		expect(ran.error?.message).toContain(message);
		expect(on.creates).toEqual([]);
	});

	it('creates nothing where the pasted URL is none, and says where to copy it from', async () => {
		const ran = await on.run(completing('trigger', { callbackUrl: 'my trigger' }), prompts('a'));
		expect(`${ran.error?.message} ${descriptionOf(ran)}`).toContain('Copy the production URL');
		expect(on.creates).toEqual([]);
	});
});
