import type { IExecuteFunctions, IRunExecutionData, IWorkflowBase } from 'n8n-workflow';

import {
	startResultsCheck,
	startDeliveryCheck,
} from '../../../nodes/MediaGeneration/suspend/checkExecutions';
import type {
	DeliveryCheck,
	ResultsCheck,
} from '../../../nodes/MediaGeneration/suspend/checkState';
import { API_KEY, executeContext } from '../../workflow/engine';
import { FakeClock } from '../support';

const CHECK: DeliveryCheck = {
	version: 1,
	purpose: 'delivery',
	nodeName: 'Media',
	startedAt: 0,
	intervalMs: 0,
	deliveries: [{ taskId: 'task-1', until: 60_000, address: 'https://n8n.test/webhook/a/callback' }],
};

const stored = (more: Partial<IRunExecutionData> = {}) =>
	({ resultData: { runData: {} }, ...more }) as IRunExecutionData;

/** Leaves a check behind, of which n8n's database has one thing after the other. */
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
	await startDeliveryCheck(context, CHECK, clock);
	expect(clock.now()).toBe((questions - 1) * 50);
	return questions;
}

/** The settings of the workflow that a sub-execution runs, started in a workflow with these settings. */
async function settingsOf(
	begin: (context: IExecuteFunctions) => Promise<unknown>,
	settings: object | undefined,
) {
	const context = executeContext({
		node: {},
		credential: { baseUrl: 'https://api.example.com', apiKey: API_KEY },
	});
	let code: IWorkflowBase | undefined;
	const changed: Partial<IExecuteFunctions> = {
		executeWorkflow: async (info) => {
			code = info.code;
			return await Promise.resolve({ executionId: '9', data: [null], waitTill: new Date(0) });
		},
		getExecutionDataById: async () => await Promise.resolve(stored({ waitTill: new Date(0) })),
	};
	Object.assign(context, changed, { getWorkflowSettings: settings && (() => settings) });
	await begin(context);
	return code?.settings;
}

const leaveIn = async (settings: object | undefined) =>
	await settingsOf(
		async (context) => await startDeliveryCheck(context, CHECK, new FakeClock()),
		settings,
	);

describe('the error workflow of the workflow', () => {
	it('hears of a check that nobody waits for', async () => {
		expect(await leaveIn({ errorWorkflow: 'w7' })).toMatchObject({ errorWorkflow: 'w7' });
	});

	it.each([{}, { errorWorkflow: undefined }, undefined])(
		'is none where n8n names none (%j)',
		async (settings) => {
			expect(await leaveIn(settings)).not.toHaveProperty('errorWorkflow');
		},
	);

	it('hears of a suspended run by its own execution, and not twice', async () => {
		const state: ResultsCheck = {
			...CHECK,
			purpose: 'results',
			parentExecutionId: '1',
			onError: 'stopWorkflow',
			ifSomeFail: 'keep',
			output: { download: false, split: false, binaryField: 'data' },
			items: [],
		};
		const begin = async (context: IExecuteFunctions) => await startResultsCheck(context, state);
		expect(await settingsOf(begin, { errorWorkflow: 'w7' })).not.toHaveProperty('errorWorkflow');
	});
});

describe('a check that is left behind', () => {
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
