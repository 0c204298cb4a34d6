import type { IExecuteFunctions } from 'n8n-workflow';

import {
	forgetStates,
	newestState,
	rememberState,
} from '../../../nodes/MediaGeneration/n8n/newestState';
import { clock } from '../../../nodes/MediaGeneration/shared/clock';

const MINUTE = 60_000;

const contextOf = (execution: string | undefined, runIndex = 0) =>
	({
		getExecutionId: () => execution,
		getNode: () => ({ id: 'node' }),
		runIndex,
	}) as unknown as IExecuteFunctions;

const now = jest.spyOn(clock, 'now');
const at = (ms: number) => now.mockReturnValue(ms);

beforeEach(() => {
	forgetStates();
	at(0);
});
afterAll(() => jest.restoreAllMocks());

it('a run is told by its node, its execution and its number', () => {
	rememberState(contextOf('1'), 2, { a: 1 });
	rememberState(contextOf('1', 1), 7, { a: 2 });
	expect(newestState(contextOf('1'))).toMatchObject({ turn: 2, state: '{"a":1}' });
	expect(newestState(contextOf('1', 1))).toMatchObject({ turn: 7, state: '{"a":2}' });
	expect(newestState(contextOf('2'))).toBeUndefined();
});

it('a run without an execution is not remembered', () => {
	rememberState(contextOf(undefined), 2, {});
	expect(newestState(contextOf(undefined))).toBeUndefined();
});

it('after half an hour only the number of the turn is known', () => {
	rememberState(contextOf('1'), 2, {});
	at(29 * MINUTE);
	expect(newestState(contextOf('1'))?.state).toBe('{}');
	at(30 * MINUTE);
	expect(newestState(contextOf('1'))).toMatchObject({ turn: 2, state: undefined });
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
