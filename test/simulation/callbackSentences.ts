import { MINUTE } from '../durations';
import { TRIGGER_PATH } from '../workflow/contexts';
import { isUndecided, isUnwatched } from './exceptions';
import type { ServiceTask } from './world/service';
import { referenceOf } from './world/workflow';
import type { World } from './world/world';

/** How the trigger refuses a callback; and how n8n answers where no node is asked. */
const REFUSALS = [401, 404, 409, 500, 502];

const isForTrigger = (task: ServiceTask | undefined): boolean =>
	task?.webhookUrl?.includes(TRIGGER_PATH) === true;

/** The sentences of the contract that speak of callbacks and of the trigger. Each brings what contradicts it. */
export const callbackSentences = {
	'every finished task starts the workflow of the trigger once': (world) => {
		const { service, n8n } = world;
		return service.tasks
			.filter(isForTrigger)
			.filter((task) => n8n.starts(task.id) !== (service.isFinished(task) ? 1 : 0))
			.filter((task) => n8n.starts(task.id) > 0 || !isUndecided(world, task))
			.map(({ id }) => `${id} started it ${n8n.starts(id)} times`);
	},

	'a callback that does not come is made up for by itself': ({ notMadeUpFor }) =>
		notMadeUpFor.map((id) => `${id} has not started it after seven minutes`),

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

/** So long it takes to start a check. */
const START_MS = 15_000;

/** A check brings what ended before it within this time. */
const CHECKED_WITHIN_MS = 4 * MINUTE;

/** The check, the execution that restarts it, and the check once more are stored late. */
const slowStoreMs = ({ history }: World) => 3 * (history.slowStores[0] ?? 0);

/** Tasks that only their lost callbacks have kept from starting the workflow of the trigger. */
export const missingTasks = (world: World): ServiceTask[] =>
	world.service.tasks
		.filter((task) => isMissing(world, task))
		.filter((task) => !isUnwatched(world, task));

function isMissing(world: World, task: ServiceTask): boolean {
	const { history, n8n } = world;
	const { id, endsAt, createdAt } = task;
	const leftAt = leftAtOf(world, task);
	return (
		isForTrigger(task) &&
		n8n.starts(id) === 0 &&
		leftAt !== undefined &&
		Math.max(leftAt, endsAt) + CHECKED_WITHIN_MS + slowStoreMs(world) <= world.time.now &&
		endsAt < createdAt + history.node.timeoutSeconds * 1000 - 5_000 &&
		!n8n.hasBroken(id) &&
		// So short a time leaves room for two reads.
		(history.node.timeoutSeconds > 20 || !mayReadsFail(world)) &&
		// n8n keeps the moment of the next check by the wall clock.
		world.setBackMs + world.setForwardMs === 0
	);
}

const mayReadsFail = ({ history: { reads } }: World) =>
	reads.isFifthLost || reads.mostPerSecond > 0;

/**
 * Until when its run must have started a check for a task: at the end, and before it a minute after the first task, and
 * again whenever as much time has passed as before. A power cut leaves no time for it.
 */
function leftAtOf(world: World, task: ServiceTask): number | undefined {
	const { n8n, service, network } = world;
	const row = n8n.row(task.by.replace('execution ', ''));
	const told = ({ id, toldTo }: ServiceTask) =>
		toldTo && network.seen.find(({ kind, taskId }) => kind === 'create' && taskId === id);
	const toldAt = told(task)?.answeredAt;
	if (!row || toldAt === undefined) return undefined;
	const first = service.tasks.find((other) => other.by === task.by && told(other)) ?? task;
	const betweenAt = 2 * toldAt - first.createdAt + MINUTE;
	const { endedAt = Infinity, status, process } = row;
	// A run that is stopped has ended for n8n before it starts its last check.
	const startMs = START_MS + slowStoreMs(world);
	const lastAt = status === 'canceled' ? endedAt + startMs : endedAt;
	// Nor does a run that is stopped wait for an answer for long.
	if (toldAt > lastAt) return undefined;
	const leftAt = Math.min(betweenAt + startMs, lastAt);
	return leftAt <= (process?.diedAt ?? Infinity) ? leftAt : undefined;
}
