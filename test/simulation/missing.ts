import { isUnwatched } from './exceptions';
import type { ServiceTask } from './world/service';
import { TRIGGER_PATH } from './world/workflow';
import type { World } from './world/world';

const MINUTE_MS = 60_000;

/** So long it takes to start a check. */
const START_MS = 15_000;

/** A check brings what ended before it within this time. */
const CHECKED_WITHIN_MS = 4 * MINUTE_MS;

export const isForTrigger = (task: ServiceTask | undefined): boolean =>
	task?.webhookUrl?.includes(TRIGGER_PATH) === true;

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
		Math.max(leftAt, endsAt) + CHECKED_WITHIN_MS <= world.time.now &&
		endsAt < createdAt + history.node.timeoutSeconds * 1000 - 5_000 &&
		!n8n.hasBroken(id) &&
		// n8n keeps the moment of the next check by the wall clock.
		world.setBackMs + world.setForwardMs === 0
	);
}

/**
 * Until when its run must have started a check for a task: at the end, and before it a minute after the first task, and
 * again whenever as much time has passed as before. A power cut leaves no time for it.
 */
function leftAtOf({ n8n, service, network }: World, task: ServiceTask): number | undefined {
	const row = n8n.row(task.by.replace('execution ', ''));
	const told = ({ id, toldTo }: ServiceTask) =>
		toldTo && network.seen.find(({ kind, taskId }) => kind === 'create' && taskId === id);
	const toldAt = told(task)?.answeredAt;
	if (!row || toldAt === undefined) return undefined;
	const first = service.tasks.find((other) => other.by === task.by && told(other)) ?? task;
	const betweenAt = 2 * toldAt - first.createdAt + MINUTE_MS;
	const { endedAt = Infinity, status, process } = row;
	// A run that is stopped has ended for n8n before it starts its last check.
	const lastAt = status === 'canceled' ? endedAt + START_MS : endedAt;
	// Nor does a run that is stopped wait for an answer for long.
	if (toldAt > lastAt) return undefined;
	const leftAt = Math.min(betweenAt + START_MS, lastAt);
	return leftAt <= (process?.diedAt ?? Infinity) ? leftAt : undefined;
}
