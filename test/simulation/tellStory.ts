import type { IDataObject, INodeExecutionData } from 'n8n-workflow';

import { type History, PLAIN } from './history';
import { enact } from './simulate';
import type { Condition, Deed, Story } from './stories';
import type { Row } from './world/database';
import type { NodeSources } from './world/nodeSources';
import { itemOf } from './world/service';
import { SUB } from './world/subExecution';
import type { World } from './world/world';

/** What happened, as far as it can be told of n8n from outside: times and ids left out. */
export interface StoryTrace {
	/** How many tasks the service has made for each item. */
	creates: Record<string, number>;
	/** In no particular order: those of triggered tasks begin as their tasks end. */
	executions: ExecutionTrace[];
}

export interface ExecutionTrace {
	kind: 'run' | 'retry' | 'triggered' | 'sub';
	/** All that it has been, in order. */
	statuses: string[];
	/** The items that reached the nodes behind ours. */
	out: Record<string, string[]>;
}

/** The history of a story, for the model: what happens in it happens by its steps. */
export function historyOf({ completion, tasks, node }: Story): History {
	return {
		...PLAIN,
		node: { ...PLAIN.node, timeoutSeconds: 600, ...node, completion, items: tasks.length },
	};
}

/** So long passes before a retry and a kill, in which n8n writes down what it is at. */
export const PAUSE_MS = 1_000;

/** Longer than any story takes, milliseconds. */
const END_MS = 15 * 60_000;

/** Lets a story happen in the model. */
export async function tell(story: Story, sources: NodeSources): Promise<StoryTrace> {
	const { tasks, steps = [] } = story;
	const world = await enact(historyOf(story), sources, async (here) => {
		const { time, user, service } = here;
		service.script = (item) => tasks[Number(item.split(' ').pop())] ?? {};
		user.activate(true);
		await time.run(1_000);
		user.start();
		for (const [when, what] of steps) {
			while (!holds(when, here) && time.now < END_MS) await time.run(time.now + 20);
			if (what === 'retry' || what === 'kill') await time.run(time.now + PAUSE_MS);
			perform(what, here);
		}
		await time.run(END_MS);
	});
	return traceOf(world);
}

const ofUser = ({ start }: Row) => start === 'Start';

function holds(condition: Condition, { n8n, service }: World): boolean {
	const rows = [...n8n.rows.values()];
	const hasEnded = ({ status }: Row) => !['new', 'running', 'waiting'].includes(status);
	const [what, count = ''] = condition.split(' ');
	switch (what) {
		case 'created':
			return service.tasks.length >= Number(count);
		case 'started':
			return rows.filter((row) => row.start === 'Trigger' && hasEnded(row)).length >= Number(count);
		case 'suspended':
			return rows.findLast(ofUser)?.status === 'waiting';
		case 'asleep':
			return rows.filter(({ start, status }) => start === SUB && status === 'waiting').length === 2;
		default:
			return rows.filter(ofUser).every(hasEnded);
	}
}

function perform(deed: Deed, { n8n, user }: World): void {
	const isSupervisor = ({ start, parent }: Row) =>
		start === SUB && n8n.rows.get(parent ?? '')?.start === 'Start';
	const isChecker = (row: Row) => row.start === SUB && !isSupervisor(row);
	switch (deed) {
		case 'stop':
			return user.stop();
		case 'retry':
			return void user.retry();
		case 'stop checker':
			return user.stop(isChecker);
		case 'stop supervisor':
			return user.stop(isSupervisor);
		case 'kill':
			return n8n.processes.kill();
	}
}

function traceOf({ n8n, service }: World): StoryTrace {
	const itemOfTask = (taskId: string) => service.task(taskId)?.item ?? '';
	const executions = [...n8n.rows.values()].map(({ id, mode, start, statuses }) => ({
		kind: kindOf(mode, start),
		statuses,
		out: outOf(
			n8n.sunk.flatMap(({ execution, node, items }) =>
				execution === id ? [[node, items] as const] : [],
			),
			itemOfTask,
		),
	}));
	return makeTrace(
		service.tasks.map(({ item }) => item),
		executions,
	);
}

/** @param start the node that an execution begins at */
export function kindOf(mode: string, start: string): ExecutionTrace['kind'] {
	if (mode === 'retry') return 'retry';
	if (mode === 'integrated') return 'sub';
	return start === 'Trigger' ? 'triggered' : 'run';
}

/** @param items the item of each task that the service has made */
export function makeTrace(items: string[], executions: ExecutionTrace[]): StoryTrace {
	const creates: StoryTrace['creates'] = {};
	for (const item of items.sort()) creates[item] = (creates[item] ?? 0) + 1;
	const key = (execution: ExecutionTrace) => JSON.stringify(execution);
	return {
		creates,
		executions: executions.sort((one, other) => key(one).localeCompare(key(other))),
	};
}

/**
 * @param reached the nodes behind ours and the items that have come there
 * @param itemOfTask the item that a task was made for
 */
export function outOf(
	reached: ReadonlyArray<readonly [node: string, items: INodeExecutionData[]]>,
	itemOfTask: (taskId: string) => string,
): ExecutionTrace['out'] {
	return Object.fromEntries(
		reached.map(([node, items]) => [node, items.map(({ json }) => shown(json, itemOfTask))]),
	);
}

function shown(json: IDataObject, itemOfTask: (taskId: string) => string): string {
	const item = itemOf(json) || itemOfTask(String(json.taskId));
	const state = typeof json.state === 'string' ? json.state : 'no state';
	return [
		`${item}: ${state}`,
		...(json.timedOut === true ? ['timed out'] : []),
		...(json.error === undefined || json.error === null ? [] : ['error']),
	].join(', ');
}
