import nock from '../../nock';

import { callbackToken } from '../../../nodes/MediaGeneration/callback/callbackToken';
import type { ServiceClient } from '../../../nodes/MediaGeneration/service/client';
import { ServiceError } from '../../../nodes/MediaGeneration/service/serviceError';
import { settled } from '../../../nodes/MediaGeneration/shared/promises';
import { messageOf } from '../../../nodes/MediaGeneration/shared/itemError';
import {
	checkDeliveries,
	deliverTask,
} from '../../../nodes/MediaGeneration/suspend/missingCallbacks';
import { nextCheckAt, NOT_FINISHED } from '../../../nodes/MediaGeneration/suspend/checkSchedule';
import type { AwaitedDelivery } from '../../../nodes/MediaGeneration/suspend/checkState';
import { API_KEY, CREDENTIAL } from '../../workflow/engine';
import { useProcessedData } from '../../workflow/processedData';
import { virtualTime } from '../../workflow/time';
import { allOf, contextOf, delivery, deliveryCheck, indexes, NOW, service } from './checks';

virtualTime();

describe('a check for lost callbacks', () => {
	const check = (count: number) =>
		deliveryCheck({ deliveries: indexes(count).map((index) => delivery(index)) });

	/** Delivers to a trigger that takes what is finished, unless it answers something else. */
	const attempt =
		({ read }: ReturnType<typeof service>, answers: Record<string, string> = {}) =>
		async ({ taskId }: AwaitedDelivery) =>
			(await read(taskId)).state === 'PENDING' ? NOT_FINISHED : answers[taskId];

	it('delivers what is finished, and keeps what is not, what cannot be read, and what the trigger did not take', async () => {
		const at = service({ 'task-0': 'SUCCESS', 'task-1': 'PENDING', 'task-2': 'FAILURE' });
		const after = await checkDeliveries(check(4), attempt(at, { 'task-2': 'HTTP 404' }));
		expect(after.deliveries).toEqual([
			{ ...delivery(1), last: 'not finished' },
			{ ...delivery(2), last: 'HTTP 404' },
			{ ...delivery(3), last: 'The service is down' },
		]);
	});

	it('ends where the service asks to wait, and is followed by none before that time', async () => {
		const busy = new ServiceError('tooManyRequests', 'HTTP 429', { retryAfterMs: 1_200_000 });
		const at = service({ ...allOf(2000, 'SUCCESS'), 'task-3': busy });
		const after = await checkDeliveries(check(2000), attempt(at));
		expect(at.reads).toHaveLength(7);
		// The one that was refused, and all that were not read.
		expect(after.deliveries).toHaveLength(1 + 2000 - 7);
		expect(nextCheckAt(after, NOW, [])).toBe(NOW + 1_200_000);
	});

	it('ends where a few reads get no answer: the next begins with the others', async () => {
		const at = service(allOf(3, new ServiceError('noAnswer', 'No answer')));
		const after = await checkDeliveries(check(500), attempt(at));
		expect(at.reads).toHaveLength(3);
		expect(after.deliveries).toHaveLength(500);
		expect(after.deliveries[0]).toEqual(delivery(3));
	});
});

describe('a delivery', () => {
	const PATH = '/webhook/a/callback';
	const ACCEPTED = { accepted: true, taskId: 'task-1' };
	const DUPLICATE = { accepted: false, reason: 'duplicate' };
	const NOT_SELECTED = { accepted: false, reason: 'event not selected' };

	/** A trigger of this n8n, whose public address was another when the task was created. */
	const own = { taskId: 'task-1', until: 0, address: '/a/callback' };
	const elsewhere = { ...own, address: `https://other.test${PATH}` };
	const ofThisWorkflow = { ...own, triggerId: 'trigger' };

	useProcessedData();

	const deliver = async (delivery: AwaitedDelivery) => {
		const { read: readTask } = service({ 'task-1': 'SUCCESS' });
		const client = { readTask } as unknown as ServiceClient;
		const work = async () =>
			await deliverTask(contextOf(), delivery, { ...CREDENTIAL, models: [], client });
		const ended = await settled(work);
		return 'value' in ended ? ended.value : messageOf(ended.error);
	};

	/** Somebody answers callbacks there. */
	const at = (origin: string, status: number, answer: string | object, reference?: string) =>
		nock(origin)
			.post(PATH, { taskId: 'task-1', state: 'SUCCESS' })
			.query({ token: callbackToken(PATH, API_KEY, reference), ...(reference && { reference }) })
			.reply(status, answer);

	it.each([
		[undefined, own],
		['row 7', { ...own, address: '/a/callback?reference=row+7' }],
	])('to a trigger of this n8n goes to the present address (reference %s)', async (...given) => {
		const [reference, delivery] = given;
		const called = at('https://n8n.test', 200, ACCEPTED, reference);
		expect(await deliver(delivery)).toBeUndefined();
		expect(called.isDone()).toBe(true);
	});

	it('goes to no former address: who has that one now would get the token', async () => {
		at('https://n8n.test', 404, {});
		const stranger = at('https://gone.test', 200, ACCEPTED);
		expect(await deliver(own)).toContain('HTTP 404');
		expect(stranger.isDone()).toBe(false);
	});

	it.each([ACCEPTED, DUPLICATE, NOT_SELECTED])(
		'counts where one elsewhere says %j',
		async (said) => {
			at('https://other.test', 200, said);
			expect(await deliver(elsewhere)).toBeUndefined();
		},
	);

	it.each(['OK', '<!DOCTYPE html><p>Parked'])('does not count with 200 and %s', async (answer) => {
		at('https://other.test', 200, answer);
		expect(await deliver(elsewhere)).toContain('in place of the trigger');
	});

	it('counts for a trigger of this workflow once its ledger has the task, or it takes the task twice', async () => {
		at('https://n8n.test', 200, ACCEPTED);
		const last = (await deliver(ofThisWorkflow)) ?? '';
		expect(last).toContain('has not started the workflow yet');
		// Its process still knows it: it may be about to start.
		at('https://n8n.test', 200, DUPLICATE);
		expect(await deliver({ ...ofThisWorkflow, last })).toBe(last);
		at('https://n8n.test', 200, ACCEPTED);
		expect(await deliver({ ...ofThisWorkflow, last })).toBeUndefined();
	});

	it('counts for a trigger of this workflow that does not want the event', async () => {
		at('https://n8n.test', 200, NOT_SELECTED);
		expect(await deliver(ofThisWorkflow)).toBeUndefined();
	});
});
