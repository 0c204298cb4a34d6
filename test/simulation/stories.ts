import type { IDataObject, INodeExecutionData } from 'n8n-workflow';

import { type History, PLAIN } from './history';
import { enact } from './simulate';
import type { Row } from './world/n8n';
import type { NodeSources } from './world/nodeSources';
import { itemOf } from './world/service';
import { SUB } from './world/subExecution';
import type { World } from './world/world';

/** What becomes of one item's task. */
export interface TaskOfStory {
	/** How long it takes, milliseconds. */
	ms: number;
	fails?: true;
	callback?: 'lost' | 'doubled';
	/** What becomes of its first create. */
	create?: 'answer lost' | '401' | '429 with Retry-After';
}

/** What a step waits for; `n` counts over the whole story. */
export type Condition =
	/** So many tasks are created. */
	| `created ${number}`
	/** So many executions of the trigger have ended. */
	| `started ${number}`
	/** The run waits for its tasks. */
	| 'suspended'
	/** The last run, or its last retry, has come to its end. */
	| 'ended'
	/** The two sub-executions wait. */
	| 'asleep';

export type Deed =
	| 'stop'
	| 'retry'
	| 'start'
	| 'stop checker'
	| 'stop supervisor'
	| 'switch off'
	| 'switch on'
	/** n8n dies in this moment, and starts again. */
	| 'kill';

/** A short history that happens in the model and on a real n8n: both must tell the same of it. */
export interface Story {
	title: string;
	completion: History['node']['completion'];
	tasks: TaskOfStory[];
	node?: Partial<History['node']>;
	steps?: Array<[when: Condition, what: Deed]>;
}

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

const silent = (ms: number, more: Partial<TaskOfStory> = {}): TaskOfStory => ({
	ms,
	callback: 'lost',
	...more,
});

/** The run is suspended with its last create. */
export const AT_ONCE = { suspendAfter: 0 };

/** Those in which n8n is killed, all at the same moment, need an n8n of their own. */
export const hasKill = ({ steps = [] }: Story) => steps.some(([, what]) => what === 'kill');

export const stories: Story[] = [
	{ title: 'a batch', completion: 'wait', tasks: [{ ms: 3_000 }, { ms: 1_000 }] },
	{
		title: 'a batch in which one fails',
		completion: 'wait',
		tasks: [{ ms: 1_000 }, { ms: 2_000, fails: true }],
	},
	{
		title: 'a batch in which one fails, with an error output',
		completion: 'wait',
		node: { onError: 'continueErrorOutput' },
		tasks: [{ ms: 1_000, fails: true }, { ms: 2_000 }],
	},
	{
		title: 'a batch in which all fail',
		completion: 'wait',
		tasks: [
			{ ms: 1_000, fails: true },
			{ ms: 1_500, fails: true },
		],
	},
	{
		title: 'a batch in which all fail, tried again by n8n',
		completion: 'wait',
		node: { maxTries: 2 },
		tasks: [{ ms: 1_000, fails: true }],
	},
	{
		title: 'an answer to a create that is lost',
		completion: 'wait',
		tasks: [{ ms: 1_000, create: 'answer lost' }],
	},
	{
		title: 'an answer to a create that is lost, tried again by n8n',
		completion: 'wait',
		node: { maxTries: 2 },
		tasks: [{ ms: 1_000, create: 'answer lost' }, { ms: 1_000 }],
	},
	{
		title: 'an answer to a create that is lost, tried again by the user',
		completion: 'wait',
		tasks: [{ ms: 1_000, create: 'answer lost' }],
		steps: [['ended', 'retry']],
	},
	{
		title: 'a create that is refused for a while',
		completion: 'wait',
		tasks: [{ ms: 1_000, create: '429 with Retry-After' }],
	},
	{
		title: 'a key that is refused once, tried again by the user',
		completion: 'wait',
		tasks: [{ ms: 1_000, create: '401' }],
		steps: [['ended', 'retry']],
	},
	{
		title: 'a batch that is stopped',
		completion: 'wait',
		tasks: [{ ms: 20_000 }, { ms: 20_000 }],
		steps: [['created 2', 'stop']],
	},
	{
		title: 'a batch that is stopped and retried',
		completion: 'wait',
		tasks: [{ ms: 20_000 }, { ms: 20_000 }],
		steps: [
			['created 2', 'stop'],
			['ended', 'retry'],
		],
	},
	{
		title: 'a batch that times out',
		completion: 'wait',
		node: { timeoutSeconds: 5 },
		tasks: [{ ms: 30_000 }],
	},
	{ title: 'tasks nobody waits for', completion: 'return', tasks: [{ ms: 1_000 }, { ms: 1_000 }] },
	{
		title: 'tasks nobody waits for, one refused',
		completion: 'return',
		tasks: [{ ms: 1_000 }, { ms: 1_000, create: 'answer lost' }],
	},
	{ title: 'a suspended run', completion: 'wait', node: AT_ONCE, tasks: [{ ms: 3_000 }] },
	{
		title: 'a suspended run of three',
		completion: 'wait',
		node: AT_ONCE,
		tasks: [{ ms: 4_000 }, { ms: 4_000, fails: true }, { ms: 4_000 }],
	},
	{
		title: 'a suspended run without callbacks',
		completion: 'wait',
		node: AT_ONCE,
		tasks: [silent(3_000), silent(4_000)],
	},
	{
		title: 'a suspended run in which all fail',
		completion: 'wait',
		node: AT_ONCE,
		tasks: [silent(3_000, { fails: true })],
	},
	{
		title: 'a suspended run in which all fail, with an error output',
		completion: 'wait',
		node: { ...AT_ONCE, onError: 'continueErrorOutput' },
		tasks: [silent(3_000, { fails: true }), silent(3_000, { fails: true })],
	},
	{
		title: 'a suspended run in which one create was lost',
		completion: 'wait',
		node: { ...AT_ONCE, onError: 'continueRegularOutput' },
		tasks: [silent(3_000), silent(3_000, { create: 'answer lost' })],
	},
	{
		title: 'a suspended run in which all fail, retried',
		completion: 'wait',
		node: AT_ONCE,
		tasks: [silent(3_000, { fails: true })],
		steps: [['ended', 'retry']],
	},
	{
		title: 'a suspended run that is stopped',
		completion: 'wait',
		node: AT_ONCE,
		tasks: [silent(3_000)],
		steps: [['suspended', 'stop']],
	},
	{
		title: 'a suspended run that is stopped and retried',
		completion: 'wait',
		node: AT_ONCE,
		tasks: [silent(3_000), silent(3_000)],
		steps: [
			['suspended', 'stop'],
			['ended', 'retry'],
		],
	},
	{
		title: 'a run that is stopped while it creates, retried and suspended',
		completion: 'wait',
		node: AT_ONCE,
		tasks: [silent(3_000), silent(3_000, { create: '429 with Retry-After' })],
		steps: [
			['created 1', 'stop'],
			['ended', 'retry'],
		],
	},
	{
		title: 'a suspended run, and the user stops the one that checks',
		completion: 'wait',
		node: AT_ONCE,
		tasks: [silent(3_000)],
		steps: [['suspended', 'stop checker']],
	},
	{
		title: 'a suspended run, and the user stops the one that supervises',
		completion: 'wait',
		node: AT_ONCE,
		tasks: [silent(3_000)],
		steps: [['suspended', 'stop supervisor']],
	},
	{
		title: 'a suspended run that times out',
		completion: 'wait',
		// Sooner than a check is due, with short minutes, too.
		node: { ...AT_ONCE, timeoutSeconds: 15 },
		tasks: [silent(3_000), silent(400_000)],
	},
	{ title: 'triggered tasks', completion: 'trigger', tasks: [{ ms: 3_000 }, { ms: 4_500 }] },
	{
		title: 'triggered tasks whose callbacks come twice',
		completion: 'trigger',
		tasks: [{ ms: 3_000, callback: 'doubled' }],
	},
	{
		title: 'a triggered task that fails',
		completion: 'trigger',
		tasks: [{ ms: 3_000, fails: true }],
	},
	{
		title: 'a triggered task whose callback is lost',
		completion: 'trigger',
		tasks: [silent(3_000), { ms: 4_500 }],
	},
	{
		title: 'triggered tasks, and the user stops the one that supervises',
		completion: 'trigger',
		tasks: [{ ms: 8_000 }],
		steps: [['asleep', 'stop supervisor']],
	},
	{
		title: 'triggered tasks, and the user stops the one that checks',
		completion: 'trigger',
		tasks: [silent(8_000)],
		steps: [['asleep', 'stop checker']],
	},
	{
		title: 'n8n is killed while a batch is held',
		completion: 'wait',
		tasks: [{ ms: 60_000 }],
		steps: [['created 1', 'kill']],
	},
	{
		title: 'n8n is killed while a batch is held, and it is retried',
		completion: 'wait',
		tasks: [{ ms: 60_000 }],
		steps: [
			['created 1', 'kill'],
			['ended', 'retry'],
		],
	},
	{
		title: 'n8n is killed while a run is suspended',
		completion: 'wait',
		node: AT_ONCE,
		tasks: [silent(3_000), silent(5_000, { fails: true })],
		steps: [['suspended', 'kill']],
	},
	{
		title: 'n8n is killed while triggered tasks are under way whose callbacks are lost',
		completion: 'trigger',
		tasks: [silent(3_000), silent(4_000)],
		steps: [['asleep', 'kill']],
	},
	{
		title: 'n8n is killed after a triggered task has started the workflow',
		completion: 'trigger',
		tasks: [{ ms: 500 }],
		steps: [['started 1', 'kill']],
	},
	{
		title: 'n8n is killed after a batch has ended',
		completion: 'return',
		tasks: [{ ms: 1_000 }],
		steps: [['ended', 'kill']],
	},
	// The last, since it is killed within the pause that the service asks for.
	{
		title: 'n8n is killed while a run creates that is to be suspended',
		completion: 'wait',
		node: AT_ONCE,
		tasks: [silent(3_000), silent(3_000, { create: '429 with Retry-After' })],
		steps: [['created 1', 'kill']],
	},
];

/** The history of a story, for the model: what happens in it happens by its steps. */
export function historyOf({ completion, tasks, node }: Story): History {
	return {
		...PLAIN,
		node: { ...PLAIN.node, timeoutSeconds: 600, ...node, completion, items: tasks.length },
		requests: tasks.flatMap(({ create }, nth) =>
			create ? [{ on: 'create' as const, nth, what: create }] : [],
		),
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
		const { time, n8n, service } = here;
		service.script = (item) => {
			const { ms = 0, fails = false, callback } = tasks[Number(item.split(' ').pop())] ?? {};
			return { durationMs: ms, fails, callback };
		};
		n8n.activate(true);
		await time.run(1_000);
		n8n.start();
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

function perform(deed: Deed, { n8n }: World): void {
	const isSupervisor = ({ start, parent }: Row) =>
		start === SUB && n8n.rows.get(parent ?? '')?.start === 'Start';
	const isChecker = (row: Row) => row.start === SUB && !isSupervisor(row);
	switch (deed) {
		case 'stop':
			return n8n.stop();
		case 'retry':
			return void n8n.retry();
		case 'start':
			return n8n.start();
		case 'stop checker':
			return n8n.stop(isChecker);
		case 'stop supervisor':
			return n8n.stop(isSupervisor);
		case 'switch off':
			return n8n.activate(false);
		case 'switch on':
			return n8n.activate(true);
		case 'kill':
			return n8n.kill();
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
