import type { IExecuteFunctions, IRunExecutionData } from 'n8n-workflow';

import { leaveBehind } from '../../../nodes/MediaGeneration/wait/subExecution';
import type { DeliveryWatch } from '../../../nodes/MediaGeneration/wait/watchState';
import { API_KEY, executeContext } from '../../workflow/engine';
import { FakeClock } from '../support';

const WATCH: DeliveryWatch = {
	version: 1,
	purpose: 'delivery',
	nodeName: 'Media',
	startedAt: 0,
	intervalMs: 0,
	deliveries: [{ taskId: 'task-1', until: 60_000, address: 'https://n8n.test/webhook/a/callback' }],
};

const stored = (more: Partial<IRunExecutionData> = {}) =>
	({ resultData: { runData: {} }, ...more }) as IRunExecutionData;

/** Leaves a watch behind, of which n8n's database has one thing after the other. */
async function leave(...states: Array<IRunExecutionData | undefined>): Promise<number> {
	const context = executeContext({
		node: {},
		credential: { baseUrl: 'https://api.example.com', apiKey: API_KEY },
	});
	let questions = 0;
	const changed: Partial<IExecuteFunctions> = {
		executeWorkflow: async () => await Promise.resolve({ executionId: '9', data: [null] }),
		getExecutionDataById: async () =>
			await Promise.resolve(states[Math.min(questions++, states.length - 1)]),
	};
	Object.assign(context, changed);
	const clock = new FakeClock();
	await leaveBehind(context, WATCH, clock);
	expect(clock.now()).toBe((questions - 1) * 50);
	return questions;
}

describe('a watch that is left behind', () => {
	it('sleeps when the run goes on: one that dies before would never begin', async () => {
		const asleep = stored({ waitTill: new Date(0) });
		expect(await leave(stored(), stored(), asleep)).toBe(3);
	});

	it('is not waited for where it has failed, or is gone', async () => {
		const failed = stored({ resultData: { runData: {}, error: { message: 'No' } as never } });
		expect(await leave(failed)).toBe(1);
		expect(await leave(undefined)).toBe(1);
	});
});
