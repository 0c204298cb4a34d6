import nock from 'nock';

import type { Ran } from './engine';
import { imageNode, prompts, stage } from './support';

const on = stage();

/** What n8n shows above the output of the node. */
const hints = ({ run }: Ran) =>
	(run.data.resultData.runData.Media ?? []).flatMap((task) =>
		(task.hints ?? []).map(({ message }) => message),
	);

const failing = { prompt: 'b', simulate: { outcome: 'FAILURE' } };
const keepsGoing = { onError: 'continueRegularOutput' as const };

describe('the hint above the output', () => {
	it('warns where some failed and all were let out', async () => {
		const ran = await on.run(imageNode(), prompts('a', failing, 'c'));
		expect(ran.error).toBeUndefined();
		expect(hints(ran)).toEqual([expect.stringMatching(/^1 of 3 tasks failed; /)]);
	});

	it('tells how many of the tasks failed and what the others cost', async () => {
		const ran = await on.run(imageNode({}, keepsGoing), prompts('a', failing, 'c'));
		expect(hints(ran)).toEqual([
			expect.stringMatching(
				/^1 of 3 tasks failed; 0.16 USD estimated; 16 credits billed\. .*'error'/,
			),
		]);
	});

	it('is the same where the results are split', async () => {
		on.service.configure({ resultCount: 3 });
		const ran = await on.run(imageNode({ splitResults: true }), prompts('a', 'b'));
		expect(ran.output).toHaveLength(6);
		expect(hints(ran)).toEqual(['2 tasks created; 0.16 USD estimated; 48 credits billed']);
	});

	it('is there while the execution is suspended', async () => {
		on.service.configure({ callbackLost: true, latencyMs: 60_000 });
		const node = imageNode({}, { parameters: { completion: 'suspend' } });
		const ran = await on.run(node, prompts('a', 'b'));
		expect(hints(ran)).toEqual(['2 tasks created; 0.16 USD estimated']);
	});

	it('says where the results will appear that a trigger gets, without the token', async () => {
		const callbackUrl = 'https://n8n.example.com/webhook/a/callback?token=x';
		const node = imageNode({}, { parameters: { completion: 'trigger', callbackUrl } });
		const [, where, ...others] = hints(await on.run(node, prompts('a', 'b')));
		expect(where).toMatch(
			/stay PENDING.* Trigger at https:\/\/n8n\.example\.com\/webhook\/a\/callback, as an execution/,
		);
		expect(others).toEqual([]);
	});

	it('is of the last try after a retry', async () => {
		const twice = { retryOnFail: true, maxTries: 2, waitBetweenTries: 0 };
		on.service.configure({ readStatus: { status: 404, times: 3 } });
		const ran = await on.run(imageNode({}, twice), prompts('a'));
		expect(hints(ran)).toEqual(['1 task created; 0.08 USD estimated; 8 credits billed']);
	});
});

describe('where the service cannot call back', () => {
	afterEach(() => nock.cleanAll());
	afterAll(() => nock.restore());

	it('the output panel says what comes in place of callbacks', async () => {
		nock('https://api.example.com').post('/api/generate').reply(200, { taskId: 'task-1' });
		const node = imageNode(
			{},
			{
				parameters: {
					completion: 'trigger',
					callbackUrl: 'http://localhost:5678/webhook/a/callback',
				},
			},
		);
		const credential = { ...on.credential, baseUrl: 'https://api.example.com' };
		const ran = await on.run(node, prompts('a'), { credential });
		expect(hints(ran)).toEqual([
			'1 task created; 0.08 USD estimated',
			expect.stringContaining('WEBHOOK_URL'),
		]);
	});
});
