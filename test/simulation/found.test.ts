import { MINUTE, SECOND } from '../durations';
import { type PartlyHistory, plainBut } from './history';
import { simulate } from './simulate';

const BATCH = {
	node: { items: 40, maxInFlight: 4 },
	service: { taskSeconds: 12, isSpread: true },
} as const;

const LOOP = {
	workflow: 'loop',
	node: { items: 2, suspendAfter: 0.02, maxInFlight: 10 },
	service: { taskSeconds: 1 },
} as const;

const kill = (
	of: 'later turns' | 'retries' | 'orders' | 'anything',
	afterEffects: number,
	isSeen = false,
) => ({
	...{ process: 0, of, afterEffects, isSeen, downMs: 1_000 },
});

type Trouble = NonNullable<PartlyHistory['trouble']>[number];

const lasts = (what: Trouble['what'], forMs: number, on: Trouble['on'] = 'creates') => ({
	trouble: [{ what, on, forMs, at: 70 * SECOND }],
});

/** Histories that once violated the contract, made as short as they could be: what is not plain in them. */
const FOUND: Record<string, PartlyHistory> = {
	'a picture of 90 s is out after 139 s': { service: { taskSeconds: 90 }, second: 45 },
	'a run stops in the middle when another run learns the second of the look': {
		...BATCH,
		...{ node: { items: 60, maxInFlight: 4 }, others: [200_000] },
	},
	'downloads make a turn miss the look': { ...BATCH, fileSeconds: 12 },
	'a loop of short rounds is never stored': {
		...{ workflow: 'loop', node: { items: 20 }, service: { taskSeconds: 20 } },
		...{ ends: 'killed', endsAt: 480_000 },
	},
	'a second node is cancelled by the time limit': {
		...{ workflow: 'in a row', node: { suspendAfter: 1 }, service: { taskSeconds: 140 } },
		limitSeconds: 300,
	},
	'a retry pays twice at a second node': {
		...{ workflow: 'in a row', node: { items: 3 }, service: { taskSeconds: 60 } },
		...{ ends: 'killed twice', endsAt: 82_000 },
	},
	'a retry pays twice at a first node, since it was killed at a second one': {
		...{ n8n: 'queue mode', workflow: 'in a row', node: { items: 3 } },
		...{ service: { taskSeconds: 60 }, ends: 'killed twice', endsAt: 9_000, diesAgainMs: 3_000 },
	},
	'a file that comes late has the time limit cancel all items': {
		...{ service: { taskSeconds: 280, isSpread: false }, fileSeconds: 30, limitSeconds: 300 },
	},
	'the rounds of a loop order until the time limit cancels them': {
		...{ workflow: 'loop', node: { items: 12 }, service: { taskSeconds: 120 }, limitSeconds: 300 },
	},
	'reads that fail until the time limit have it cancel all items': {
		...{ node: { items: 8 }, service: { taskSeconds: 200 }, limitSeconds: 300 },
		...lasts('blip: 503', 10 * MINUTE, 'all requests'),
	},
	'a file that comes late keeps a caller waiting that hangs up': {
		...{ workflow: 'hangs up', service: { taskSeconds: 45, isSpread: false }, fileSeconds: 30 },
	},
	'a retry that failed, and is retried, is refused': { ends: 'fails twice' },
	'a database that is away when a run goes to sleep leaves it running for ever': {
		...{ ...BATCH, node: { ...BATCH.node, suspendAfter: 1.2 } },
		...lasts('database away', 10 * SECOND),
	},
	'ten seconds of 404 fail all items that are left': {
		...BATCH,
		...lasts('blip: 404 as text', 10 * SECOND),
	},
	'a minute of 401 fails all items that are left': { ...BATCH, ...lasts('blip: 401', MINUTE) },
	'five minutes of 403 fail all items that are left': {
		...BATCH,
		...lasts('blip: 403 as a page', 5 * MINUTE),
	},
	'five minutes without a service': { ...BATCH, ...lasts('service away', 5 * MINUTE) },
	'orders go out while a slow gateway has not answered the one before, and more than six are in doubt':
		{
			...{ ...BATCH, service: { ...BATCH.service, slowestAnswerMs: 20_000 } },
			...lasts('blip: 504', 5 * MINUTE),
		},
	'a caller is stopped while the called workflow orders': {
		...{ ...BATCH, workflow: 'called', ends: 'stopped', endsAt: 31_000 },
	},
	'a caller is stopped while the called workflow orders on a worker': {
		...{ ...BATCH, n8n: 'queue mode', workflow: 'called', ends: 'stopped', endsAt: 31_000 },
	},
	'a kill while files are fetched behind the trigger leaves tasks without an end': {
		...{ workflow: 'triggered', node: { items: 12 }, fileSeconds: 60 },
		...{ ends: 'killed', endsAt: 24_000 },
	},
	'two hours of 404 leave finished tasks that reach no trigger': {
		...{ workflow: 'triggered', node: { items: 3 } },
		...lasts('blip: 404 as JSON', 120 * MINUTE, 'all requests'),
	},
	'a run is stopped while it creates, and its retry sleeps: the error of the first stays with the retry':
		{
			node: { suspendAfter: 0, items: 2 },
			service: { maxUnfinished: 1 },
			acts: [
				{ at: 220, what: 'stop' },
				{ at: 270, what: 'retry' },
			],
		},
	'two workers find no row of a task in the same milliseconds, and the later one never hears what it wrote':
		{
			...{ n8n: 'queue mode', slowestQueryMs: 60, workflow: 'triggered', triggerTries: 2 },
			...{ service: { sendsTwice: true }, storeTroubles: [{ nth: 1, isWritten: true }] },
		},
	'a second callback finds the row of its task, and a write of the database fails: it starts the workflow again':
		{
			...{ workflow: 'triggered', triggerTries: 2, service: { sendsTwice: true } },
			storeTroubles: [{ nth: 3, isWritten: true }],
		},
	'a held run is tried again: the unfinished tasks of its first try count among the tasks at once':
		{
			node: { suspendAfter: 0.1, items: 7, maxTries: 3, maxInFlight: 1 },
			requests: [{ on: 'create', nth: 0, what: "a firewall's 403" }],
		},
	'a proxy answers for the service and asks to wait: the next create, of another item, comes at once':
		{
			node: { items: 2, maxInFlight: 1 },
			requests: [{ on: 'create', nth: 0, what: "a proxy's 503 with Retry-After" }],
		},
	'a task is read for the last time before its time is up: it is given up then, and its place is given away':
		{
			node: { items: 7, timeoutSeconds: 20, maxInFlight: 1 },
			service: { slowestAnswerMs: 1000, taskSeconds: 25 },
		},
	'a run is stopped before n8n can tell it: with On Error: Continue its input leaves in place of results':
		{ node: { onError: 'continueErrorOutput' }, acts: [{ at: 17, what: 'stop' }] },
	'a turn cannot be noted as begun, and the next try creates all the same': {
		node: { suspendAfter: 0.1, items: 2, ifSomeFail: 'stop', maxTries: 2, maxInFlight: 1 },
		kills: [kill('later turns', 8)],
		storeTroubles: [{ nth: 0, isWritten: false }],
	},
	'a check for callbacks whose read is refused reads the same task again after half a second': {
		...{ workflow: 'triggered', node: { items: 2 }, callbacks: [{ nth: 0, what: 'lost' }] },
		requests: [{ on: 'read', nth: 1, what: '429' }],
	},
	'a run is killed before its node begins, and is retried twice at once: both retries order': {
		kills: [{ process: 0, of: 'anything', afterEffects: 0, isSeen: false, downMs: 1_000 }],
		retriesTwice: true,
	},
	'a run that sleeps is retried: the run and its retry both create the failed task anew': {
		node: { suspendAfter: 0.02, retryFailed: 1 },
		service: { failing: [0] },
		acts: [{ at: 1_329, what: 'retry what sleeps' }],
	},
	'a stopped run is retried twice: both retries create the failed task anew': {
		node: { suspendAfter: 0.02, retryFailed: 1 },
		...{ service: { failing: [0] }, retriesTwice: true },
		acts: [{ at: 1_400, what: 'stop and retry' }],
	},
	'of two retries of a killed run one is killed, and its own retry orders what the other one has ordered':
		{
			...{ node: { suspendAfter: 0.02 }, retriesTwice: true },
			requests: [{ on: 'create', nth: 0, what: '503 with Retry-After' }],
			kills: [kill('later turns', 0), kill('retries', 0)],
		},
	'a task that the service has forgotten gets five minutes more from each try of Retry On Fail': {
		...{ node: { maxTries: 3 }, forgotten: [{ nth: 0, afterMs: 0 }] },
	},
	'the time of a task is up while a check sleeps, and one lost read ends it': {
		...{ workflow: 'triggered', node: { items: 2, timeoutSeconds: 20 } },
		requests: [
			{ on: 'read', nth: 0, what: 'answer lost' },
			{ on: 'create', nth: 0, what: 'answer lost' },
		],
		callbacks: [{ nth: 0, what: 'lost' }],
	},
	'two retries of a loop share its rounds': {
		...{ ...LOOP, retriesTwice: true, kills: [kill('later turns', 6)] },
		requests: [{ on: 'create', nth: 0, what: '429 with a time in its body' }],
	},
	'a retry of a loop loses its claim to another one that asks at the same moment': {
		...{ ...LOOP, salt: 5, slowestQueryMs: 60, node: { ...LOOP.node, items: 8 } },
		...{ retriesTwice: true, kills: [kill('later turns', 11)] },
	},
	'two retries share the nodes of a workflow': {
		...{ workflow: 'in a row', node: { items: 6, maxInFlight: 1, suspendAfter: 0 } },
		...{ service: { taskSeconds: 20 }, ends: 'killed', endsAt: 90_000, retriesTwice: true },
	},
	'a loop that was retried while it slept orders its later rounds as well': {
		...{ ...LOOP, salt: 6249, acts: [{ at: 2034, what: 'retry what sleeps' }] },
	},
	'a loop that n8n wakes twice orders a round twice': {
		...{ workflow: 'loop', node: { items: 7, suspendAfter: 0.1, maxInFlight: 3 }, salt: 9910 },
		...{ second: 44, service: { taskSeconds: 5 }, doubleWakes: [{ nth: 1, afterMs: 100 }] },
	},
	'a run is stopped while n8n stores its end, and its retry orders everything again': {
		...{ salt: 6476, n8n: 'one place', slowestQueryMs: 60, workflow: 'triggered' },
		...{ node: { items: 5, suspendAfter: 0, maxInFlight: 1 }, service: { taskSeconds: 25 } },
		acts: [
			{ at: 816, what: 'stop' },
			{ at: 897, what: 'retry' },
		],
	},
	'a retry asks for the name of another one, which a third one takes for its claim: both order': {
		...{ salt: 28660, slowestQueryMs: 60, workflow: 'triggered', retriesTwice: true },
		node: { items: 5, suspendAfter: 0.1, maxInFlight: 3, onError: 'stopWorkflow' },
		service: { taskSeconds: 5, maxPerSecond: 1 },
		callbacks: [{ nth: 0, what: 'lost' }],
		kills: [kill('anything', 2, true), kill('orders', 0)],
		acts: [
			{ at: 21, what: 'stop and retry' },
			{ at: 5786, what: 'retry' },
		],
	},
	'a loop dies as it wakes, and its retry refuses the later rounds': {
		...{ ...LOOP, salt: 9, kills: [kill('later turns', 9), kill('anything', 0)] },
		requests: [{ on: 'create', nth: 0, what: 'answer lost' }],
		acts: [
			{ at: 0, what: 'start' },
			{ at: 0, what: 'stop' },
		],
	},
};

test.each(Object.entries(FOUND))('a history that once went wrong: %s', async (_, parts) => {
	expect((await simulate(plainBut(parts))).violations).toEqual([]);
});

test('a create whose answer trickles for ever is given up after two minutes, and is in doubt', async () => {
	const { violations, trace } = await simulate(
		plainBut({
			node: { timeoutSeconds: 600, items: 2 },
			requests: [{ on: 'create', nth: 0, what: 'answer trickles' }],
		}),
	);
	expect(violations).toEqual([]);
	const out = trace.find((line) => line.includes('comes to Sink')) ?? '';
	expect(Number.parseFloat(out)).toBeGreaterThan(115);
	// A create in doubt has the next one wait.
	expect(Number.parseFloat(out)).toBeLessThan(330);
});
