import type { Settings } from '../service/settings';
import type { History } from './history';

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
	| 'stop checker'
	| 'stop supervisor'
	/** n8n dies in this moment, and starts again. */
	| 'kill';

/** A short history that happens in the model and on a real n8n: both must tell the same of it. */
export interface Story {
	title: string;
	completion: History['node']['completion'];
	/** The switches of each item's task. */
	tasks: Settings[];
	node?: Partial<History['node']>;
	steps?: Array<[when: Condition, what: Deed]>;
}

const silent = (latencyMs: number, more: Settings = {}): Settings => ({
	latencyMs,
	callbackLost: true,
	...more,
});
const takes = (...latencies: number[]): Settings[] => latencies.map((latencyMs) => ({ latencyMs }));

const FAILS = { outcome: 'FAILURE' } as const;
/** The answer to the create is lost. */
const LOST = { createLost: { times: 1 } };
const REFUSED = { createStatus: { status: 429, times: 1, retryAfter: 7 } };

/** The run is suspended with its last create. */
export const AT_ONCE = { suspendAfter: 0 };

/** Those in which n8n is killed, all at the same moment, need an n8n of their own. */
export const hasKill = ({ steps = [] }: Story) => steps.some(([, what]) => what === 'kill');

type More = Pick<Story, 'node' | 'steps'>;

const story =
	(completion: Story['completion'], node: Story['node'] = {}) =>
	(title: string, tasks: Settings[], more: More = {}): Story => ({
		title,
		completion,
		tasks,
		...more,
		node: { ...node, ...more.node },
	});
const held = story('wait');
const suspended = story('wait', AT_ONCE);
const triggered = story('trigger');
const returned = story('return');

const steps = (...list: NonNullable<Story['steps']>): More => ({ steps: list });
const twice: More = { node: { maxTries: 2 } };
const errorOutput: More = { node: { onError: 'continueErrorOutput' } };

export const stories: Story[] = [
	held('a batch', takes(3_000, 1_000)),
	held('a batch in which one fails', [{ latencyMs: 1_000 }, { latencyMs: 2_000, ...FAILS }]),
	held(
		'a batch in which one fails, with an error output',
		[{ latencyMs: 1_000, ...FAILS }, { latencyMs: 2_000 }],
		errorOutput,
	),
	held('a batch in which all fail', [
		{ latencyMs: 1_000, ...FAILS },
		{ latencyMs: 1_500, ...FAILS },
	]),
	held('a batch in which all fail, tried again by n8n', [{ latencyMs: 1_000, ...FAILS }], twice),
	held('an answer to a create that is lost', [{ latencyMs: 1_000, ...LOST }]),
	held(
		'an answer to a create that is lost, tried again by n8n',
		[{ latencyMs: 1_000, ...LOST }, { latencyMs: 1_000 }],
		twice,
	),
	held(
		'an answer to a create that is lost, tried again by the user',
		[{ latencyMs: 1_000, ...LOST }],
		steps(['ended', 'retry']),
	),
	held('a create that is refused for a while', [{ latencyMs: 1_000, ...REFUSED }]),
	held(
		'a key that is refused once, tried again by the user',
		[{ latencyMs: 1_000, createStatus: { status: 401, times: 1 } }],
		steps(['ended', 'retry']),
	),
	held('a batch that is stopped', takes(20_000, 20_000), steps(['created 2', 'stop'])),
	held(
		'a batch that is stopped and retried',
		takes(20_000, 20_000),
		steps(['created 2', 'stop'], ['ended', 'retry']),
	),
	held('a batch that times out', takes(30_000), { node: { timeoutSeconds: 5 } }),
	returned('tasks nobody waits for', takes(1_000, 1_000)),
	returned('tasks nobody waits for, one refused', [
		{ latencyMs: 1_000 },
		{ latencyMs: 1_000, ...LOST },
	]),
	suspended('a suspended run', takes(3_000)),
	suspended('a suspended run of three', [
		{ latencyMs: 4_000 },
		{ latencyMs: 4_000, ...FAILS },
		{ latencyMs: 4_000 },
	]),
	suspended('a suspended run without callbacks', [silent(3_000), silent(4_000)]),
	suspended('a suspended run in which all fail', [silent(3_000, FAILS)]),
	suspended(
		'a suspended run in which all fail, with an error output',
		[silent(3_000, FAILS), silent(3_000, FAILS)],
		errorOutput,
	),
	suspended('a suspended run in which one create was lost', [silent(3_000), silent(3_000, LOST)], {
		node: { onError: 'continueRegularOutput' },
	}),
	suspended(
		'a suspended run in which all fail, retried',
		[silent(3_000, FAILS)],
		steps(['ended', 'retry']),
	),
	suspended('a suspended run that is stopped', [silent(3_000)], steps(['suspended', 'stop'])),
	suspended(
		'a suspended run that is stopped and retried',
		[silent(3_000), silent(3_000)],
		steps(['suspended', 'stop'], ['ended', 'retry']),
	),
	suspended(
		'a run that is stopped while it creates, retried and suspended',
		[silent(3_000), silent(3_000, REFUSED)],
		steps(['created 1', 'stop'], ['ended', 'retry']),
	),
	suspended(
		'a suspended run, and the user stops the one that checks',
		[silent(3_000)],
		steps(['suspended', 'stop checker']),
	),
	suspended(
		'a suspended run, and the user stops the one that supervises',
		[silent(3_000)],
		steps(['suspended', 'stop supervisor']),
	),
	suspended(
		'a suspended run that times out',
		[silent(3_000), silent(400_000)],
		// Sooner than a check is due, with short minutes, too.
		{ node: { timeoutSeconds: 15 } },
	),
	triggered('triggered tasks', takes(3_000, 4_500)),
	triggered('triggered tasks whose callbacks come twice', [
		{ latencyMs: 3_000, callbackCopies: 2 },
	]),
	triggered('a triggered task that fails', [{ latencyMs: 3_000, ...FAILS }]),
	triggered('a triggered task whose callback is lost', [silent(3_000), { latencyMs: 4_500 }]),
	triggered(
		'triggered tasks, and the user stops the one that supervises',
		takes(8_000),
		steps(['asleep', 'stop supervisor']),
	),
	triggered(
		'triggered tasks, and the user stops the one that checks',
		[silent(8_000)],
		steps(['asleep', 'stop checker']),
	),
	held('n8n is killed while a batch is held', takes(60_000), steps(['created 1', 'kill'])),
	held(
		'n8n is killed while a batch is held, and it is retried',
		takes(60_000),
		steps(['created 1', 'kill'], ['ended', 'retry']),
	),
	suspended(
		'n8n is killed while a run is suspended',
		[silent(3_000), silent(5_000, FAILS)],
		steps(['suspended', 'kill']),
	),
	triggered(
		'n8n is killed while triggered tasks are under way whose callbacks are lost',
		[silent(3_000), silent(4_000)],
		steps(['asleep', 'kill']),
	),
	triggered(
		'n8n is killed after a triggered task has started the workflow',
		takes(500),
		steps(['started 1', 'kill']),
	),
	returned('n8n is killed after a batch has ended', takes(1_000), steps(['ended', 'kill'])),
	// The last, since it is killed within the pause that the service asks for.
	suspended(
		'n8n is killed while a run creates that is to be suspended',
		[silent(3_000), silent(3_000, REFUSED)],
		steps(['created 1', 'kill']),
	),
];
