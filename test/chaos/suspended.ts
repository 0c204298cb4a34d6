import { until } from '../n8n/client';
import type { Place } from './place';

const PATIENCE_MS = 600_000;

/**
 * Waits until nothing runs any more: what is not finished is suspended.
 *
 * @param tasks how many the runs create
 */
export async function untilSuspended({ stage, query }: Place, tasks: number): Promise<void> {
	await until(`${tasks} tasks to be created`, PATIENCE_MS, async () =>
		Promise.resolve(stage.service.tasks.size >= tasks),
	);
	await until('all executions to be suspended', PATIENCE_MS, async () => {
		const [active] = await query(
			"select count(*) from execution_entity where status in ('new', 'running')",
		);
		return active === '0';
	});
}
