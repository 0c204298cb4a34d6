import type { IExecuteFunctions } from 'n8n-workflow';

import {
	forgetStates,
	newestState,
	rememberState,
} from '../../../nodes/MediaGeneration/n8n/newestState';

const contextOf = (execution: string | undefined) =>
	({
		getExecutionId: () => execution,
		getNode: () => ({ id: '1' }),
	}) as unknown as IExecuteFunctions;

beforeEach(forgetStates);

it('a run without an execution is not remembered', () => {
	rememberState(contextOf(undefined), 2, {});
	expect(newestState(contextOf(undefined))).toBeUndefined();
});

it('states of more than 64 MiB in all: of the oldest only the number of the turn is known', () => {
	const large = { text: 'x'.repeat(12 * 1024 ** 2) };
	for (const execution of ['1', '2', '3']) rememberState(contextOf(execution), 5, large);
	expect(newestState(contextOf('1'))).toMatchObject({ turn: 5, state: undefined });
	for (const execution of ['2', '3']) {
		expect(newestState(contextOf(execution))?.state?.length).toBeGreaterThan(12 * 1024 ** 2);
	}
	// A state takes the place of the one before.
	for (let turn = 6; turn < 10; turn++) rememberState(contextOf('3'), turn, large);
	expect(newestState(contextOf('2'))?.state).toBeDefined();
});
