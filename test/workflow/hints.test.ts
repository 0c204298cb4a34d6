import type { IDataObject } from 'n8n-workflow';
import nock from '../nock';

import { SERVICE } from './engine';
import { hintsOf, keepsGoing, MINUTE, stage } from './support';

// A batch takes many turns of the clock, and the machine may be busy.
jest.setTimeout(60_000);

// The simulated service.
beforeAll(() => nock.enableNetConnect('127.0.0.1'));
const on = stage();

const failing = { prompt: 'b', simulate: { outcome: 'FAILURE' } };
const notifies = (callbackUrl: string) => ({
	parameters: { completion: 'trigger', callbackUrl },
});

/** What is said above the output of such a run, without what is said of the next time. */
const summaries = async (...given: Parameters<typeof on.images>) =>
	hintsOf(await on.images(...given)).filter((text) => !text.startsWith('Pin this output'));

describe('the hint above the output', () => {
	it.each([{}, keepsGoing])(
		'tells how many of the tasks failed and what the others cost, where all are let out (%j)',
		async (node) => {
			expect(await summaries(['a', failing, 'c'], {}, node)).toEqual([
				expect.stringMatching(
					/^1 of 3 tasks failed: \w.+ \(prompt: “b”\)\. Estimated price: 0.16 USD\. The service charged 16 credits\. Run only .*'Continue \(using error output\)'\.$/,
				),
			]);
		},
	);

	it('is there while the execution is suspended', async () => {
		on.service.configure({ latencyMs: MINUTE });
		expect(await summaries(['a', 'b'], { suspendAfter: 0 })).toEqual([
			'2 tasks created. Estimated price: 0.16 USD.',
			'n8n waits for the tasks. You do not need to enter anything. Meanwhile two more executions in the list check the tasks: do not stop them.',
		]);
	});

	it('says where the results will appear that a trigger gets, without the token', async () => {
		const node = notifies('https://n8n.example.com/webhook/a/callback?token=x');
		const [, where, ...others] = hintsOf(await on.images(['a', 'b'], {}, node));
		expect(where).toMatch(
			/stay PENDING.* Trigger at https:\/\/n8n\.example\.com\/webhook\/a\/callback: look in the list of executions/,
		);
		expect(others).toEqual([]);
	});

	it('says what comes in place of callbacks where the service cannot call back', async () => {
		nock(SERVICE).post('/api/generate').reply(200, { taskId: 'task-1' });
		const node = notifies('http://localhost:5678/webhook/a/callback');
		const credential = { ...on.credential, baseUrl: SERVICE };
		expect(await summaries(['a'], {}, node, { credential })).toEqual([
			'1 task created. Estimated price: 0.08 USD.',
			expect.stringContaining('WEBHOOK_URL'),
		]);
	});

	it('is of the last try after a retry', async () => {
		const twice = { retryOnFail: true, maxTries: 2, waitBetweenTries: 0 };
		on.service.configure({ readStatus: { status: 404, times: 3 } });
		expect(await summaries(['a'], {}, twice)).toEqual([
			'1 task created. Estimated price: 0.08 USD. The service charged 8 credits.',
		]);
	});
});

it.each<[IDataObject, IDataObject, boolean]>([
	[{}, {}, true],
	[{ downloadResults: true }, {}, false],
	[{}, { completion: 'return' }, false],
])(
	'how to see results is said where they were not downloaded (%j %j: %s)',
	async (options, parameters, isSaid) => {
		on.service.configure({ mediaBytes: 100, mediaType: 'image/png' });
		const hints = hintsOf(await on.images(['a'], options, { parameters }));
		const pins = hints.filter((text) =>
			text.startsWith('Pin this output before you build the next steps'),
		);
		expect(pins).toHaveLength(isSaid ? 1 : 0);
	},
);
