import { guard, type WatcherState } from '../../../nodes/MediaGeneration/wait/guard';

const NOW = 1_000_000_000;
const MINUTE = 60_000;
const due = (minutesAgo: number): WatcherState => ({
	kind: 'waiting',
	due: NOW - minutesAgo * MINUTE,
});

it.each<[string, WatcherState, boolean, boolean, ReturnType<typeof guard>]>([
	['sleeps', due(-10), true, false, 'rest'],
	['looks at present', due(1), true, false, 'rest'],
	['is overdue, as all are after n8n was away', due(4), true, false, 'suspect'],
	['is still overdue a minute later', due(5), true, true, 'takeOver'],
	['is overdue, and nobody waits for its end', due(5), false, true, 'takeOver'],
	['has ended, and its results have yet to arrive', { kind: 'ended' }, true, false, 'suspect'],
	['has ended, and its results never arrived', { kind: 'ended' }, true, true, 'takeOver'],
	['has ended, and nobody waits for its end', { kind: 'ended' }, false, false, 'end'],
	['was stopped, and an execution waits for it', { kind: 'failed' }, true, true, 'takeOver'],
	['was stopped, and nobody waits for its end', { kind: 'failed' }, false, true, 'end'],
	['was deleted, and an execution waits for it', { kind: 'gone' }, true, true, 'takeOver'],
])('a watcher that %s', (_what, watcher, isAwaited, wasSuspect, decision) => {
	expect(guard(watcher, isAwaited, wasSuspect, NOW)).toBe(decision);
});
