import type { IDataObject } from 'n8n-workflow';
import nock from '../nock';

import type { Ran } from './engine';
import { imageNode, prompts, stage } from './support';

// A batch takes many turns of the clock, and the machine may be busy.
jest.setTimeout(60_000);

// The simulated service.
beforeAll(() => nock.enableNetConnect('127.0.0.1'));
const on = stage();

/** What n8n shows above the output of the node. */
const hints = ({ run }: Ran) =>
	(run.data.resultData.runData.Media ?? []).flatMap((task) =>
		(task.hints ?? []).map(({ message }) => message),
	);

/** Without what is said of the next time. */
const summaries = (ran: Ran) => hints(ran).filter((text) => !text.startsWith('Pin this output'));

const failing = { prompt: 'b', simulate: { outcome: 'FAILURE' } };
const keepsGoing = { onError: 'continueRegularOutput' as const };

describe('the hint above the output', () => {
	it('warns where some failed and all were let out', async () => {
		const ran = await on.run(imageNode(), prompts('a', failing, 'c'));
		expect(ran.error).toBeUndefined();
		expect(summaries(ran)).toEqual([
			expect.stringMatching(/^1 of 3 tasks failed: Task .+ failed at the service/),
		]);
	});

	it('tells how many of the tasks failed and what the others cost', async () => {
		const ran = await on.run(imageNode({}, keepsGoing), prompts('a', failing, 'c'));
		expect(summaries(ran)).toEqual([
			expect.stringMatching(
				/^1 of 3 tasks failed: .+\. Estimated price: 0.16 USD\. The service charged 16 credits\. Run only .*'Continue \(using error output\)'\.$/,
			),
		]);
	});

	it('is the same where the results are split', async () => {
		on.service.configure({ resultCount: 3 });
		const ran = await on.run(imageNode({ splitResults: true }), prompts('a', 'b'));
		expect(ran.output).toHaveLength(6);
		expect(summaries(ran)).toEqual([
			'2 tasks created. Estimated price: 0.16 USD. The service charged 48 credits.',
		]);
	});

	it('is there while the execution is suspended', async () => {
		on.service.configure({ callbackLost: true, latencyMs: 60_000 });
		const node = imageNode({ suspendAfter: 0 });
		const ran = await on.run(node, prompts('a', 'b'));
		expect(summaries(ran)).toEqual([
			'2 tasks created. Estimated price: 0.16 USD.',
			'n8n waits for the tasks and checks on them. You do not need to enter anything.',
		]);
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
		expect(summaries(ran)).toEqual([
			'1 task created. Estimated price: 0.08 USD. The service charged 8 credits.',
		]);
	});
});

describe('where the service cannot call back', () => {
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
		expect(summaries(ran)).toEqual([
			'1 task created. Estimated price: 0.08 USD.',
			expect.stringContaining('WEBHOOK_URL'),
		]);
	});
});

describe('how to see results that were not downloaded', () => {
	const told = async (options: IDataObject, parameters: IDataObject = {}) => {
		const ran = await on.run(imageNode(options, { parameters }), prompts('a'));
		return hints(ran).some((text) =>
			text.startsWith('Pin this output before you build the next steps'),
		);
	};

	it('is said after a run', async () => {
		expect(await told({})).toBe(true);
	});

	it('is not said where they were, or where there are none yet', async () => {
		on.service.configure({ mediaBytes: 100, mediaType: 'image/png' });
		expect(await told({ downloadResults: true })).toBe(false);
		expect(await told({}, { completion: 'return' })).toBe(false);
	});
});
