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

const FAILS = { outcome: 'FAILURE' } as const;

/** The run is suspended with its last create. */
export const AT_ONCE = { suspendAfter: 0 };

/** Those in which n8n is killed, all at the same moment, need an n8n of their own. */
export const hasKill = ({ steps = [] }: Story) => steps.some(([, what]) => what === 'kill');

export const stories: Story[] = [
	{ title: 'a batch', completion: 'wait', tasks: [{ latencyMs: 3_000 }, { latencyMs: 1_000 }] },
	{
		title: 'a batch in which one fails',
		completion: 'wait',
		tasks: [{ latencyMs: 1_000 }, { latencyMs: 2_000, ...FAILS }],
	},
	{
		title: 'a batch in which one fails, with an error output',
		completion: 'wait',
		node: { onError: 'continueErrorOutput' },
		tasks: [{ latencyMs: 1_000, ...FAILS }, { latencyMs: 2_000 }],
	},
	{
		title: 'a batch in which all fail',
		completion: 'wait',
		tasks: [
			{ latencyMs: 1_000, ...FAILS },
			{ latencyMs: 1_500, ...FAILS },
		],
	},
	{
		title: 'a batch in which all fail, tried again by n8n',
		completion: 'wait',
		node: { maxTries: 2 },
		tasks: [{ latencyMs: 1_000, ...FAILS }],
	},
	{
		title: 'an answer to a create that is lost',
		completion: 'wait',
		tasks: [{ latencyMs: 1_000, createLost: { times: 1 } }],
	},
	{
		title: 'an answer to a create that is lost, tried again by n8n',
		completion: 'wait',
		node: { maxTries: 2 },
		tasks: [{ latencyMs: 1_000, createLost: { times: 1 } }, { latencyMs: 1_000 }],
	},
	{
		title: 'an answer to a create that is lost, tried again by the user',
		completion: 'wait',
		tasks: [{ latencyMs: 1_000, createLost: { times: 1 } }],
		steps: [['ended', 'retry']],
	},
	{
		title: 'a create that is refused for a while',
		completion: 'wait',
		tasks: [{ latencyMs: 1_000, createStatus: { status: 429, times: 1, retryAfter: 7 } }],
	},
	{
		title: 'a key that is refused once, tried again by the user',
		completion: 'wait',
		tasks: [{ latencyMs: 1_000, createStatus: { status: 401, times: 1 } }],
		steps: [['ended', 'retry']],
	},
	{
		title: 'a batch that is stopped',
		completion: 'wait',
		tasks: [{ latencyMs: 20_000 }, { latencyMs: 20_000 }],
		steps: [['created 2', 'stop']],
	},
	{
		title: 'a batch that is stopped and retried',
		completion: 'wait',
		tasks: [{ latencyMs: 20_000 }, { latencyMs: 20_000 }],
		steps: [
			['created 2', 'stop'],
			['ended', 'retry'],
		],
	},
	{
		title: 'a batch that times out',
		completion: 'wait',
		node: { timeoutSeconds: 5 },
		tasks: [{ latencyMs: 30_000 }],
	},
	{
		title: 'tasks nobody waits for',
		completion: 'return',
		tasks: [{ latencyMs: 1_000 }, { latencyMs: 1_000 }],
	},
	{
		title: 'tasks nobody waits for, one refused',
		completion: 'return',
		tasks: [{ latencyMs: 1_000 }, { latencyMs: 1_000, createLost: { times: 1 } }],
	},
	{ title: 'a suspended run', completion: 'wait', node: AT_ONCE, tasks: [{ latencyMs: 3_000 }] },
	{
		title: 'a suspended run of three',
		completion: 'wait',
		node: AT_ONCE,
		tasks: [{ latencyMs: 4_000 }, { latencyMs: 4_000, ...FAILS }, { latencyMs: 4_000 }],
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
		tasks: [silent(3_000, FAILS)],
	},
	{
		title: 'a suspended run in which all fail, with an error output',
		completion: 'wait',
		node: { ...AT_ONCE, onError: 'continueErrorOutput' },
		tasks: [silent(3_000, FAILS), silent(3_000, FAILS)],
	},
	{
		title: 'a suspended run in which one create was lost',
		completion: 'wait',
		node: { ...AT_ONCE, onError: 'continueRegularOutput' },
		tasks: [silent(3_000), silent(3_000, { createLost: { times: 1 } })],
	},
	{
		title: 'a suspended run in which all fail, retried',
		completion: 'wait',
		node: AT_ONCE,
		tasks: [silent(3_000, FAILS)],
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
		tasks: [
			silent(3_000),
			silent(3_000, { createStatus: { status: 429, times: 1, retryAfter: 7 } }),
		],
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
	{
		title: 'triggered tasks',
		completion: 'trigger',
		tasks: [{ latencyMs: 3_000 }, { latencyMs: 4_500 }],
	},
	{
		title: 'triggered tasks whose callbacks come twice',
		completion: 'trigger',
		tasks: [{ latencyMs: 3_000, callbackCopies: 2 }],
	},
	{
		title: 'a triggered task that fails',
		completion: 'trigger',
		tasks: [{ latencyMs: 3_000, ...FAILS }],
	},
	{
		title: 'a triggered task whose callback is lost',
		completion: 'trigger',
		tasks: [silent(3_000), { latencyMs: 4_500 }],
	},
	{
		title: 'triggered tasks, and the user stops the one that supervises',
		completion: 'trigger',
		tasks: [{ latencyMs: 8_000 }],
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
		tasks: [{ latencyMs: 60_000 }],
		steps: [['created 1', 'kill']],
	},
	{
		title: 'n8n is killed while a batch is held, and it is retried',
		completion: 'wait',
		tasks: [{ latencyMs: 60_000 }],
		steps: [
			['created 1', 'kill'],
			['ended', 'retry'],
		],
	},
	{
		title: 'n8n is killed while a run is suspended',
		completion: 'wait',
		node: AT_ONCE,
		tasks: [silent(3_000), silent(5_000, FAILS)],
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
		tasks: [{ latencyMs: 500 }],
		steps: [['started 1', 'kill']],
	},
	{
		title: 'n8n is killed after a batch has ended',
		completion: 'return',
		tasks: [{ latencyMs: 1_000 }],
		steps: [['ended', 'kill']],
	},
	// The last, since it is killed within the pause that the service asks for.
	{
		title: 'n8n is killed while a run creates that is to be suspended',
		completion: 'wait',
		node: AT_ONCE,
		tasks: [
			silent(3_000),
			silent(3_000, { createStatus: { status: 429, times: 1, retryAfter: 7 } }),
		],
		steps: [['created 1', 'kill']],
	},
];
