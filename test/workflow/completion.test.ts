import { callbackToken } from '../../nodes/MediaGeneration/callback/callbackToken';
import { type TestNode, TRIGGER, TRIGGER_PATH } from './engine';
import { field, IMAGE_MODEL, SECOND, stage } from './support';

const on = stage();

const returns = { parameters: { completion: 'return' } };

describe('Return Immediately', () => {
	it('puts the items out with the answer to the create, reads nothing and asks for no callback', async () => {
		const { output } = await on.run({
			parameters: { prompt: 'A lighthouse', completion: 'return' },
		});
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
		expect(on.tasks.map(({ webhookUrl }) => webhookUrl)).toEqual([undefined]);
	});

	it('takes no time to speak of for a batch', async () => {
		on.service.configure({ latencyMs: 60 * SECOND });
		const { output } = await on.images([...'abcdefghijklmnopqrst'], {}, returns);
		expect(field(output, 'taskId')).toEqual(on.taskIds);
		expect(on.elapsed).toBeLessThan(SECOND);
	});
});

describe('Notify a Trigger', () => {
	const PRODUCTION_URL = `https://n8n.test${TRIGGER_PATH}`;

	const notify = async (prompts: string[], triggers: TestNode[], callbackUrl?: string) => {
		const parameters = { completion: 'trigger', ...(callbackUrl !== undefined && { callbackUrl }) };
		return await on.images(prompts, {}, { parameters }, { triggers });
	};

	const token = () => callbackToken(TRIGGER_PATH, on.service.apiKey);

	it.each([
		['of this workflow', [TRIGGER], undefined],
		['whose URL was pasted', [], PRODUCTION_URL],
	])('has the service call back at the trigger %s, with the right token', async (...given) => {
		const [, triggers, callbackUrl] = given;
		await notify(['a', 'b'], triggers, callbackUrl);
		const signed = `${PRODUCTION_URL}?token=${token()}`;
		expect(on.tasks.map(({ webhookUrl }) => webhookUrl)).toEqual([signed, signed]);
	});

	it('lets the items leave at once, as they were created, without the token', async () => {
		const { output } = await notify(['a'], [TRIGGER]);
		const [taskId] = on.taskIds;
		const pending = { taskId, state: 'PENDING', resultUrls: [], creditsConsumed: null };
		expect(output).toMatchObject([{ json: { ...pending, record: { taskId } } }]);
		expect(on.requests('GET')).toEqual([]);
		expect(JSON.stringify(output)).not.toContain(token());
	});
});
