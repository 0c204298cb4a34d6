import { isForTrigger } from './missing';
import { referenceOf } from './world/workflow';
import type { World } from './world/world';

/** How the trigger refuses a callback; and how n8n answers where no node is asked. */
const REFUSALS = [401, 404, 409, 500, 502];

/** The sentences of the contract that speak of callbacks and of the trigger. Each brings what contradicts it. */
export const callbackSentences = {
	'every finished task starts the workflow of the trigger once': ({ service, n8n }) =>
		service.tasks
			.filter(isForTrigger)
			.filter((task) => n8n.starts(task.id) !== (service.isFinished(task) ? 1 : 0))
			.map(({ id }) => `${id} started it ${n8n.starts(id)} times`),

	'a callback that does not come is made up for by itself': ({ notMadeUpFor }) =>
		notMadeUpFor.map((id) => `${id} has not started it after ten minutes`),

	'no callback is taken for that of another task': ({ service, network }) =>
		service.answered
			// A suspended run that is gone, or was tried anew, knows its former tasks no more.
			.filter(({ taskId }) => isForTrigger(service.task(taskId)))
			// n8n's own answers speak of the webhook or the execution.
			.filter(
				({ status, said }) =>
					status === 400 || (status === 404 && JSON.stringify(said ?? '').includes('task')),
			)
			.filter(
				({ at, taskId }) =>
					!network.seen.some(
						(read) =>
							read.taskId === taskId &&
							read.status === 404 &&
							read.at <= at &&
							read.at > at - 20_000,
					),
			)
			.map(({ taskId, status }) => `the callback of ${taskId} is answered ${status}`),

	'every start has the reference that its create was given': ({ service, n8n, history }) =>
		n8n.sunk
			.filter(({ node }) => node === 'Done')
			.flatMap(({ execution, items }) =>
				items.flatMap(({ json: { taskId, reference } }) => {
					const { item = '' } = service.task(String(taskId)) ?? {};
					if (reference === (history.hasReferences ? referenceOf(item) : undefined)) return [];
					return [`execution ${execution} has the reference ${String(reference)} for ${item}`];
				}),
			),

	'a callback without its token is refused': ({ service }) =>
		service.forged
			.filter((status) => !REFUSALS.includes(status))
			.map((status) => `a stranger's callback is answered ${status}`),
} satisfies Record<string, (world: World) => string[]>;
