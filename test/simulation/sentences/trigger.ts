import { MINUTE, SECOND } from '../../durations';
import { TRIGGER_PATH } from '../../workflow/contexts';
import type { ServiceTask } from '../world/service';
import { referenceOf } from '../world/workflow';
import type { World } from '../world/world';
import { isErased, isUndecided, isUnwatched } from './exceptions';
import type { Check } from './sentences';
import { idOf } from './told';

/** How the trigger refuses a callback; and how n8n answers where no node is asked. */
const REFUSALS = [401, 404, 409, 500, 502];

const isForTrigger = (task: ServiceTask | undefined): boolean =>
	task?.webhookUrl?.includes(TRIGGER_PATH) === true;

/** What who has a trigger relies on. Each brings what contradicts it. */
export const trigger: Record<string, Check> = {
	'every finished task starts the workflow of the trigger once': (world) => {
		const { service, n8n } = world;
		return service.tasks
			.filter(isForTrigger)
			.filter((task) => n8n.starts(task.id) !== (service.isFinished(task) ? 1 : 0))
			.filter(
				(task) => n8n.starts(task.id) > 0 || !(isUndecided(world, task) || isErased(world, task)),
			)
			.map(({ id }) => `${id} started it ${n8n.starts(id)} times`);
	},

	'a callback that does not come is made up for by itself': ({ notMadeUpFor }) =>
		notMadeUpFor.map((id) => `${id} has not started it`),

	'no callback is taken for that of another task': ({ service, network }) =>
		service.answered
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
							read.at > at - 20 * SECOND,
					),
			)
			.map(({ taskId, status }) => `the callback of ${taskId} is answered ${status}`),

	'every start has the reference that its create was given': ({ service, n8n, history }) =>
		n8n.sunk
			.filter(({ node }) => node === 'Done')
			.flatMap(({ execution, items }) =>
				items.flatMap(({ json: { taskId, reference } }) => {
					const { item = '' } = service.task(String(taskId)) ?? {};
					if (reference === (history.node.hasReferences ? referenceOf(item) : undefined)) return [];
					return [`execution ${execution} has the reference ${String(reference)} for ${item}`];
				}),
			),

	'a callback without its token is refused': ({ service }) =>
		service.forged
			.filter((status) => !REFUSALS.includes(status))
			.map((status) => `a stranger's callback is answered ${status}`),
};

/** So long it takes to start a check. */
const START_MS = 15 * SECOND;

/** Tasks that only their lost callbacks have kept from starting the workflow of the trigger, when all has come to rest. */
export const missingTasks = (world: World): ServiceTask[] =>
	world.service.tasks
		.filter((task) => isMissing(world, task))
		.filter((task) => !isUnwatched(world, task));

function isMissing(world: World, task: ServiceTask): boolean {
	const { history, n8n } = world;
	const { timeoutSeconds } = history.node;
	const { id, endsAt, createdAt } = task;
	// A service may say for five minutes that it knows no task.
	const isTold = history.trouble.some(({ forMs }) => forMs > 4 * MINUTE);
	return (
		isForTrigger(task) &&
		n8n.starts(id) === 0 &&
		mustBeWatched(world, task) &&
		endsAt < createdAt + timeoutSeconds * SECOND - 5 * SECOND &&
		endsAt < world.time.now &&
		!n8n.hasBroken(id) &&
		!isTold &&
		// So short a time leaves no room for trouble with reads.
		timeoutSeconds > 60 &&
		// n8n keeps the moment of the next check by the wall clock.
		world.setBackMs + world.setForwardMs === 0
	);
}

/**
 * Whether its run had the time to start a check for a task: at the end, and before it a minute after the first task, and again
 * whenever as much time has passed as before. A power cut leaves no time for it.
 */
function mustBeWatched({ n8n, service, network }: World, task: ServiceTask): boolean {
	const row = n8n.row(idOf(task.by));
	const told = ({ id, toldTo }: ServiceTask) =>
		toldTo && network.seen.find(({ kind, taskId }) => kind === 'create' && taskId === id);
	const toldAt = told(task)?.answeredAt;
	if (!row || toldAt === undefined) return false;
	const first = service.tasks.find((other) => other.by === task.by && told(other)) ?? task;
	const betweenAt = 2 * toldAt - first.createdAt + MINUTE;
	const { endedAt = Infinity, status, process } = row;
	// A run that is stopped has ended for n8n before it starts its last check.
	const lastAt = status === 'canceled' ? endedAt + START_MS : endedAt;
	// Nor does a run that is stopped wait for an answer for long.
	if (toldAt > lastAt) return false;
	return Math.min(betweenAt + START_MS, lastAt) <= (process?.diedAt ?? Infinity);
}
