import { time, virtualTime } from '../workflow/time';
import { ofThisProcess } from './effects';
import { ServiceModel } from './model';
import type { Settings } from './settings';

virtualTime(0);

function modelWith(settings: Settings) {
	const posted: unknown[] = [];
	let tasks = 0;
	const model = new ServiceModel(
		{
			...ofThisProcess,
			newTaskId: () => `task-${++tasks}`,
			async post(_url, body) {
				posted.push(body);
				return 200;
			},
		},
		{ settings },
	);
	const create = (more: object = {}) =>
		model.create({ model: 'vendor/image', input: { prompt: 'x' }, ...more }).answer();
	const read = (taskId: string) => JSON.parse(model.read(taskId).answer().body) as object;
	/** Lets time pass until a moment, milliseconds. */
	const pass = (until: number) => time.jump(until - Date.now());
	return { model, create, read, pass, posted };
}

describe('the rules of the service, without HTTP', () => {
	it('ends a task in its time, and bills it then', () => {
		const { model, create, read, pass } = modelWith({ latencyMs: 5_000 });
		expect(create()).toMatchObject({ status: 200, body: '{"taskId":"task-1"}' });
		expect(model.store.reserved).toBe(8);
		pass(4_999);
		expect(read('task-1')).toMatchObject({ state: 'PENDING' });
		pass(5_000);
		expect(read('task-1')).toMatchObject({ state: 'SUCCESS', creditsConsumed: 8 });
		expect(model.store.reserved).toBe(0);
	});

	it('createsPerSecond: lets a second’s creates in at once, and then as they are earned', () => {
		const { create, pass } = modelWith({ createsPerSecond: { limit: 2, retryAfter: 7 } });
		create();
		create();
		expect(() => create()).toThrow(
			expect.objectContaining({ status: 429, headers: { 'retry-after': '7' } }),
		);
		pass(500);
		expect(create().status).toBe(200);
		expect(() => create()).toThrow('2 tasks a second');
	});

	it('createLagMs: knows a new task only after a while', () => {
		const { create, read, pass } = modelWith({ createLagMs: 3_000, latencyMs: 1_000 });
		create();
		pass(2_999);
		expect(() => read('task-1')).toThrow('There is no task task-1');
		pass(3_000);
		expect(read('task-1')).toMatchObject({ state: 'SUCCESS' });
	});

	it('endLagMs: calls back before the end can be read', () => {
		const { create, read, pass, posted } = modelWith({ endLagMs: 4_000, latencyMs: 1_000 });
		create({ webhook_url: 'https://n8n.test/webhook' });
		pass(4_999);
		expect(posted).toMatchObject([{ taskId: 'task-1', state: 'SUCCESS' }]);
		expect(read('task-1')).toEqual(expect.objectContaining({ state: 'PENDING' }));
		expect(read('task-1')).not.toHaveProperty('resultUrls');
		pass(5_000);
		expect(read('task-1')).toMatchObject({ state: 'SUCCESS' });
	});

	it('callbackShape: calls back with an event around the record', () => {
		const { create, pass, posted } = modelWith({ callbackShape: 'event', latencyMs: 1_000 });
		create({ webhook_url: 'https://n8n.test/webhook' });
		pass(1_000);
		expect(posted).toMatchObject([
			{ id: 'event-1', type: 'task.finished', data: { taskId: 'task-1', state: 'SUCCESS' } },
		]);
	});

	it('calls back no more once its tasks are forgotten', () => {
		const { model, create, pass, posted } = modelWith({ latencyMs: 1_000, callbackDelayMs: 500 });
		create({ webhook_url: 'https://n8n.test/webhook' });
		pass(1_200);
		model.clear();
		pass(10_000);
		expect(posted).toEqual([]);
	});
});
