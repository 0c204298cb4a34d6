import nock from '../../nock';

import { callbackToken } from '../../../nodes/MediaGeneration/callback/callbackToken';
import { deliverTask } from '../../../nodes/MediaGeneration/suspend/checkDeliveries';
import { settled } from '../../../nodes/MediaGeneration/shared/concurrency';
import { messageOf } from '../../../nodes/MediaGeneration/shared/itemError';
import { API_KEY, executeContext } from '../../workflow/engine';
import { type ProcessedData, useProcessedData } from '../../workflow/processedData';

const SERVICE = 'https://api.example.com';
const PATH = '/webhook/a/callback';

const task = {
	taskId: 'task-1',
	state: 'SUCCESS' as const,
	resultUrls: [],
	creditsConsumed: 8,
	record: {},
};

/** A trigger of this n8n, whose public address was another when the task was created. */
const own = {
	taskId: 'task-1',
	until: 0,
	address: '/a/callback',
};
const elsewhere = { taskId: 'task-1', until: 0, address: `https://other.test${PATH}` };
const ofThisWorkflow = { ...own, triggerId: 'trigger' };

const CONNECTION = { baseUrl: SERVICE, apiKey: API_KEY };

let ledger: ProcessedData;
beforeAll(async () => {
	ledger = await useProcessedData();
});
beforeEach(() => ledger.reset());

const deliver = async (delivery: Parameters<typeof deliverTask>[1]) => {
	const context = executeContext({
		node: {},
		credential: CONNECTION,
	});
	const ended = await settled(
		async () =>
			await deliverTask(context, delivery, CONNECTION, async () => await Promise.resolve(task)),
	);
	return 'value' in ended ? ended.value : messageOf(ended.error);
};

/** Somebody answers callbacks there. */
const at = (origin: string, status: number, answer: string | object) =>
	nock(origin)
		.post(PATH)
		.query({ token: callbackToken(PATH, API_KEY) })
		.reply(status, answer);

const ACCEPTED = { accepted: true, taskId: 'task-1' };
const DUPLICATE = { accepted: false, reason: 'duplicate' };

describe('a trigger of this n8n is called', () => {
	it('at the present address', async () => {
		const called = at('https://n8n.test', 200, ACCEPTED);
		expect(await deliver(own)).toBeUndefined();
		expect(called.isDone()).toBe(true);
	});

	it.each([404, 502])(
		'at no former address, where the present one answers HTTP %d: who has that one now would get the token',
		async (status) => {
			at('https://n8n.test', status, {});
			const stranger = at('https://gone.test', 200, ACCEPTED);
			expect(await deliver(own)).toContain(`HTTP ${status}`);
			expect(stranger.isDone()).toBe(false);
			nock.cleanAll();
		},
	);
});

describe('a delivery counts', () => {
	it('where a trigger elsewhere says that it has the task, or had it', async () => {
		for (const answer of [ACCEPTED, DUPLICATE, { accepted: false, reason: 'event not selected' }]) {
			at('https://other.test', 200, answer);
			expect(await deliver(elsewhere)).toBeUndefined();
		}
	});

	it.each([
		['nothing', ''],
		['a word', 'OK'],
		['a web page', '<!DOCTYPE html><title>Parked</title>'],
		['JSON of something else', { ok: true }],
		['n8n, for a workflow without this trigger', { message: 'Workflow was started' }],
		['what looks like it', { accepted: 'true' }],
		['a list', [{ accepted: true }]],
	])('not with 200 and %s', async (_what, answer) => {
		at('https://other.test', 200, answer);
		expect(await deliver(elsewhere)).toContain('in place of the trigger');
	});

	it('for a trigger of this workflow once its ledger has the task, which is asked before', async () => {
		at('https://n8n.test', 200, ACCEPTED);
		const last = await deliver(ofThisWorkflow);
		expect(last).toContain('has not started the workflow yet');
		// Its process still knows it: it may be about to start.
		at('https://n8n.test', 200, DUPLICATE);
		expect(await deliver({ ...ofThisWorkflow, last: last ?? '' })).toBe(last);
	});

	it('for a trigger of this workflow that takes the task twice, whatever its ledger says', async () => {
		at('https://n8n.test', 200, ACCEPTED);
		const last = await deliver(ofThisWorkflow);
		at('https://n8n.test', 200, ACCEPTED);
		expect(await deliver({ ...ofThisWorkflow, last: last ?? '' })).toBeUndefined();
	});

	it('for a trigger of this workflow that does not want the event', async () => {
		at('https://n8n.test', 200, { accepted: false, reason: 'event not selected' });
		expect(await deliver(ofThisWorkflow)).toBeUndefined();
	});
});
