import type { TaskPlan } from '../plan/planTypes';
import { clock, sleepUntil } from '../shared/clock';
import { settled } from '../shared/promises';
import type { Known, ReadRule } from '../wait/nextRead';
import { afterRead, nextRead } from '../wait/nextRead';
import type { RunContext } from './runContext';
import { readOnce } from './waitForTask';

/**
 * Reads a task whose item has left, so that the end of the task frees its place at the account for the next create.
 * Nothing is read before the service has refused a create, or when nothing is left to create.
 */
export async function followUntilFree(run: RunContext, plan: TaskPlan, taskId: string) {
	const { queue, signal } = run;
	const readableAt = clock.now() + plan.pollIntervalMs;
	await queue.limited;
	await settled(async () => {
		let known: Known = { dueAt: Math.max(clock.now(), readableAt), failures: 0 };
		while (queue.isCreating) {
			const pollIntervalMs = run.intervalOf(plan);
			const rule: ReadRule = { pollIntervalMs, deadline: Infinity, isOwn: true };
			const next = nextRead(known, rule, clock.now());
			if (next.kind !== 'read') return;
			await sleepUntil(next.at, signal);
			const answer = queue.isCreating ? await readOnce(run, taskId, rule) : undefined;
			if (answer === undefined) return;
			known = afterRead(known, answer, rule, clock.now());
		}
	});
	queue.finished();
}
