import type { IDataObject, INodeExecutionData } from 'n8n-workflow';

import { isTerminal, type Row } from '../workflow/n8n/database';
import { SUB } from '../workflow/n8n/executions';
import { enactRun } from './simulate';
import type { Condition, Deed, Story } from './stories';
import type { NodeSources } from './world/nodeSources';
import { itemOf } from './world/service';
import type { World } from './world/world';

/** What happened, as far as it can be told of n8n from outside: times and ids left out. */
export interface StoryTrace {
	/** The item of each task that the service has made. */
	creates: string[];
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

/** So long passes before a retry and a kill, in which n8n writes down what it is at. */
export const PAUSE_MS = 1_000;

/** Longer than any story takes, milliseconds. */
const END_MS = 15 * 60_000;

/** Lets a story happen in the model. */
export async function tell(story: Story, sources: NodeSources): Promise<StoryTrace> {
	const { completion, tasks, steps = [] } = story;
	const node = { timeoutSeconds: 600, ...story.node, completion, items: tasks.length };
	const goOn = async (here: World) => {
		const { time } = here;
		for (const [when, what] of steps) {
			while (!holds(when, here) && time.now < END_MS) await time.run(time.now + 20);
			if (what === 'retry' || what === 'kill') await time.run(time.now + PAUSE_MS);
			perform(what, here);
		}
		await time.run(END_MS);
	};
	return traceOf(await enactRun({ node }, (index) => tasks[index] ?? {}, [], goOn, sources));
}

const ofUser = (row: Row | undefined) => row?.start === 'Start';
const isTriggered = ({ start }: Row) => start === 'Trigger';

function holds(condition: Condition, { n8n, service }: World): boolean {
	const { rows } = n8n;
	const hasEnded = ({ status }: Row) => isTerminal(status);
	const isAsleep = ({ start, status }: Row) => start === SUB && status === 'waiting';
	const [what = '', count = ''] = condition.split(' ');
	const conditions: Record<string, () => boolean> = {
		created: () => service.tasks.length >= Number(count),
		started: () => rows.filter(isTriggered).filter(hasEnded).length >= Number(count),
		suspended: () => rows.findLast(ofUser)?.status === 'waiting',
		asleep: () => rows.some(isAsleep),
		ended: () => rows.filter(ofUser).every(hasEnded),
	};
	return conditions[what]!();
}

function perform(deed: Deed, { n8n, user }: World): void {
	const deeds: Record<Deed, () => unknown> = {
		stop: () => user.stop(),
		retry: () => user.retry(),
		'stop check': () => user.stop(({ start }) => start === SUB),
		kill: () => n8n.processes.living('main')[0]?.die(),
	};
	deeds[deed]();
}

function traceOf({ n8n, service }: World): StoryTrace {
	const executions = n8n.rows.map(({ id, mode, start, statuses }) => {
		const sunk = n8n.sunk.filter(({ execution }) => execution === id);
		const reached = sunk.map(({ node, items }) => [node, items] as const);
		const out = outOf(reached, (taskId) => service.task(taskId)?.item ?? '');
		return { kind: kindOf(mode, start), statuses, out };
	});
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

export function makeTrace(creates: string[], executions: ExecutionTrace[]): StoryTrace {
	const key = (execution: ExecutionTrace) => JSON.stringify(execution);
	executions.sort((one, other) => key(one).localeCompare(key(other)));
	return { creates: creates.sort(), executions };
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
