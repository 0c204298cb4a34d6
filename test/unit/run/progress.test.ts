import type { IExecuteFunctions, NodeExecutionHint } from 'n8n-workflow';

import type { Journal } from '../../../nodes/MediaGeneration/create/journal';
import type { TaskEntry } from '../../../nodes/MediaGeneration/create/taskEntry';
import { tellProgress } from '../../../nodes/MediaGeneration/run/endTurn';
import { HOUR, MINUTE } from '../../durations';
import { EPOCH } from '../../virtualTime';
import { createdEntry, entryOf } from '../create/entries';

const created = (count: number): TaskEntry[] =>
	Array.from({ length: count }, (_, index) => createdEntry({ taskId: `task-${index + 1}` }));

/** What the output panel says while a run sleeps. */
function told(entries: TaskEntry[], sleepMs = MINUTE): string {
	jest.useFakeTimers({ now: EPOCH });
	const hints: NodeExecutionHint[] = [];
	const context = {
		getNode: () => ({ name: 'Media, "two"' }),
		getExecutionId: () => '812',
		getTimezone: () => 'Asia/Tokyo',
		logger: { info: () => undefined },
		addExecutionHints: (...each: NodeExecutionHint[]) => hints.push(...each),
	} as unknown as IExecuteFunctions;
	const journal = { entries, state: { turn: 1 } } as unknown as Journal;
	tellProgress(context, journal, EPOCH + sleepMs);
	jest.useRealTimers();
	expect(hints).toHaveLength(1);
	return hints[0]?.message ?? '';
}

it('a run that sleeps says how to get its results if somebody stops it, with its few ids', () => {
	expect(told(created(2))).toContain(
		"If you stop this run, get the results of its tasks (task-1, task-2) with Wait for Task in a new node that is connected to nothing: enter 'execution 812' as 'Task ID'.",
	);
	const many = told(created(4));
	expect(many).toContain("connected to nothing: enter 'execution 812'");
	expect(many).not.toContain('task-1');
	expect(told([entryOf()])).not.toContain('If you stop');
});

it('a run says when it looks again in the time zone of the workflow', () => {
	expect(told(created(1))).toContain('looks again in about a minute.');
	const time = new Date(EPOCH + 10 * HOUR);
	const hour = String((time.getUTCHours() + 9) % 24).padStart(2, '0');
	const minute = String(time.getUTCMinutes()).padStart(2, '0');
	expect(told(created(1), 10 * HOUR)).toContain(`at ${hour}:${minute} (Asia/Tokyo).`);
});
