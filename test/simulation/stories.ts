import type { Settings } from '../service/settings';
import type { History } from './history';

/** What a step waits for; `n` counts over the whole story. */
export type Condition =
	/** So many tasks are created. */
	| `created ${number}`
	/** So many executions of the trigger have ended. */
	| `started ${number}`
	/** The run sleeps. */
	| 'suspended'
	/** The last run, or its last retry, has come to its end. */
	| 'ended'
	/** The check for callbacks sleeps. */
	| 'asleep';

export type Deed =
	| 'stop'
	| 'retry'
	/** The sub-execution that checks for callbacks. */
	| 'stop check'
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

type Step = NonNullable<Story['steps']>[number];

const FAILS = { outcome: 'FAILURE' } as const;
/** The answer to the create is lost. */
const LOST = { createLost: { times: 1 } };
const KEY_REFUSED = { createStatus: { status: 401, times: 1 } };

const takes = (latencyMs: number, ...more: Settings[]): Settings =>
	Object.assign({ latencyMs }, ...more) as Settings;
/** The task's callback is lost. */
const silent = (latencyMs: number, ...more: Settings[]) =>
	takes(latencyMs, { callbackLost: true }, ...more);

/** Those in which n8n is killed, all at the same moment, need an n8n of their own. */
export const hasKill = ({ steps = [] }: Story) => steps.some(([, what]) => what === 'kill');

const story =
	(completion: Story['completion'], node: Story['node'] = {}) =>
	(title: string, tasks: Settings[], ...steps: Step[]): Story => ({
		...{ title, completion, tasks, node, steps },
	});
/** The run is suspended with its last create. */
const suspendedWith = (node: Story['node'] = {}) => story('wait', { suspendAfter: 0, ...node });
const held = story('wait');
const heldTwice = story('wait', { maxTries: 2 });
const suspended = suspendedWith();
const triggered = story('trigger');
const returned = story('return');

const ERROR_OUTPUT = { onError: 'continueErrorOutput' } as const;

const STOP: Step = ['suspended', 'stop'];
const STOP_BOTH: Step = ['created 2', 'stop'];
const RETRY: Step = ['ended', 'retry'];
const KILL_EARLY: Step = ['created 1', 'kill'];

const short = takes(1_000);
const long = takes(20_000);
const slow = silent(3_000);
const failing = silent(3_000, FAILS);

export const stories: Story[] = [
	held('a batch in which one fails', [short, takes(2_000, FAILS)]),
	story('wait', ERROR_OUTPUT)('a batch in which one fails, with an error output', [
		takes(1_000, FAILS),
		takes(2_000),
	]),
	heldTwice('a batch in which all fail, tried again by n8n', [takes(1_000, FAILS)]),
	heldTwice('a lost answer to a create, tried again by n8n', [takes(1_000, LOST), short]),
	held('a lost answer to a create, tried again by the user', [takes(1_000, LOST)], RETRY),
	held('a key that is refused once, tried again by the user', [takes(1_000, KEY_REFUSED)], RETRY),
	held('a batch that is stopped and retried', [long, long], STOP_BOTH, RETRY),
	returned('tasks nobody waits for, one refused', [short, takes(1_000, LOST)]),
	suspended('a suspended run of three', [takes(4_000), takes(4_000, FAILS), takes(4_000)]),
	suspended('a suspended run without callbacks', [slow, silent(4_000)]),
	suspendedWith(ERROR_OUTPUT)('all fail in a suspended run, with an error output', [
		failing,
		failing,
	]),
	suspendedWith({ onError: 'continueRegularOutput' })('a suspended run lacks a create', [
		slow,
		silent(3_000, LOST),
	]),
	suspended('a suspended run in which all fail, retried', [failing], RETRY),
	suspended('a suspended run that is stopped and retried', [slow, slow], STOP, RETRY),
	// Sooner than a check is due, with short minutes, too.
	suspendedWith({ timeoutSeconds: 15 })('a suspended run that times out', [slow, silent(400_000)]),
	triggered('triggered tasks whose callbacks come twice', [takes(3_000, { callbackCopies: 2 })]),
	triggered('a triggered task that fails', [takes(3_000, FAILS)]),
	triggered('a triggered task whose callback is lost', [slow, takes(4_500)]),
	triggered('the check of triggered tasks is stopped', [silent(8_000)], ['asleep', 'stop check']),
	held(
		'n8n is killed while a batch is held, and it is retried',
		[takes(60_000)],
		KILL_EARLY,
		RETRY,
	),
	suspended(
		'n8n is killed while a run is suspended',
		[slow, silent(5_000, FAILS)],
		['suspended', 'kill'],
	),
	triggered('n8n is killed, and callbacks are lost', [slow, silent(4_000)], ['asleep', 'kill']),
	triggered(
		'n8n is killed after a callback has started the workflow',
		[takes(500)],
		['started 1', 'kill'],
	),
];
