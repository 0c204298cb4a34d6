import {
	readCheck,
	checkItem,
	type CheckState,
} from '../../../nodes/MediaGeneration/suspend/checkState';

const state: CheckState = {
	version: 1,
	purpose: 'delivery',
	nodeName: 'Media',
	startedAt: 5,
	intervalMs: 0,
	deliveries: [{ taskId: 'task-1', until: 7, address: 'https://n8n.test/webhook/a/callback' }],
};

it('comes back as it was stored', () => {
	const stored: unknown = JSON.parse(JSON.stringify([checkItem(state)]));
	expect(readCheck(stored as ReturnType<typeof checkItem>[])).toEqual(state);
});

it.each([
	['results', [{ json: { taskId: 'task-1' } }, { json: {} }]],
	['one result', [{ json: { taskId: 'task-1' } }]],
	['nothing', []],
])('is not in %s', (_what, items) => {
	expect(readCheck(items)).toBeUndefined();
});

it('of a newer version is refused with a way out, and not guessed', () => {
	const newer = { json: { check: { ...state, version: 2 } } };
	expect(() => readCheck([newer as never])).toThrow('another version');
});
