import { plainBut } from './history';
import { simulate } from './simulate';

/** Histories that once violated the contract, made as short as they could be: what is not plain in them. */
const FOUND: Record<string, Parameters<typeof plainBut>[0]> = {
	'a run is stopped while it creates, and its retry is suspended: the error of the first stays with the retry':
		{
			node: { suspendAfter: 0, items: 2 },
			service: { maxUnfinished: 1, longestTaskMs: 10_000 },
			acts: [
				{ at: 220, what: 'stop' },
				{ at: 270, what: 'retry' },
			],
		},
	'a node that stops is suspended for a task that it has created, then stopped and retried: an item that it had not begun is lost':
		{
			node: { suspendAfter: 0, items: 3, ifSomeFail: 'stop' },
			requests: [{ on: 'create', nth: 0, what: 'answer lost' }],
			callbacks: [{ nth: 0, what: 'lost' }],
			acts: [{ at: 213, what: 'stop and retry' }],
		},
	'two workers find no row of a task in the same milliseconds, and the later one never hears what it wrote':
		{
			n8n: 'queue mode',
			slowestQueryMs: 60,
			node: { completion: 'trigger' },
			trigger: { maxTries: 2 },
			service: { sendsTwice: true },
			ledgerTroubles: [{ nth: 1, isWritten: true }],
		},
	'a second callback finds the row of its task, and a write of the database fails: it takes itself for the writer, and starts the workflow again':
		{
			node: { completion: 'trigger' },
			trigger: { maxTries: 2 },
			service: { sendsTwice: true },
			ledgerTroubles: [{ nth: 3, isWritten: true }],
		},
	'a held run is tried again: the unfinished tasks of its first try count among the tasks at once':
		{
			salt: 17_017,
			node: { suspendAfter: 0.1, items: 7, maxTries: 3, maxInFlight: 1 },
			service: { longestTaskMs: 10_000 },
			requests: [{ on: 'create', nth: 0, what: "a firewall's 403" }],
		},
	'a held run is tried again: while a failed task is to be created anew, no other one is handed over':
		{
			node: { suspendAfter: 0.1, items: 6, maxTries: 3, maxInFlight: 1 },
			service: { longestTaskMs: 10_000, failing: [0] },
			requests: [{ on: 'create', nth: 0, what: "a firewall's 403" }],
		},
	'a run that is suspended at once is tried again: no task is handed over before each earlier one was read':
		{
			salt: 16_997,
			node: { suspendAfter: 0, items: 4, maxTries: 3, maxInFlight: 1 },
			service: { longestTaskMs: 40_000, failing: [0] },
			requests: [{ on: 'create', nth: 0, what: 'request lost' }],
		},
	'the time of the tasks is up while n8n still stores the suspended run: the check takes the run for gone':
		{
			slowestQueryMs: 400,
			node: { suspendAfter: 0, items: 2, timeoutSeconds: 2.2 },
			service: { longestTaskMs: 40_000 },
			acts: [{ at: 56_600, what: 'start' }],
		},
	'n8n takes longer than a minute to store the suspended run: the check takes the run for gone': {
		slowStores: [70_000],
		node: { suspendAfter: 0, items: 2 },
	},
	'n8n takes five minutes to store each execution of a suspended run: the check takes the run for gone':
		{
			slowStores: [300_000],
			node: { suspendAfter: 0, items: 2 },
		},
	'n8n is killed while it still stores the check for callbacks, and the run has ended long before':
		{
			salt: 28_168,
			slowStores: [70_000],
			node: { completion: 'trigger' },
			keyChanges: [{ at: 116, noticedAfterMs: 0 }],
			kills: [{ process: 0, of: 'callbacks', afterEffects: 3, isSeen: false, downMs: 1_000 }],
		},
	'a proxy answers for the service and asks to wait: the next create, of another item, comes at once':
		{
			node: { items: 2, maxInFlight: 1 },
			strange: [{ on: 'create', nth: 0, what: "a proxy's 503 with Retry-After" }],
		},
	'a task is read for the last time a moment before its time is up: it is given up then, and its place is given away':
		{
			node: { items: 7, timeoutSeconds: 20, maxInFlight: 1 },
			service: { slowestAnswerMs: 1000, longestTaskMs: 40_000 },
		},
	'a run is stopped before n8n can tell it: with On Error: Continue its input leaves in place of results':
		{
			salt: 46_330,
			node: { onError: 'continueErrorOutput' },
			acts: [{ at: 117, what: 'stop' }],
		},
	'a turn of a check for callbacks ends a moment before the time of a task is up: the next turn reads its tasks again':
		{
			n8n: 'queue mode',
			node: { completion: 'trigger', items: 2, timeoutSeconds: 120 },
			service: { longestTaskMs: 40_000, maxUnfinished: 1, saysRetryAfter: true },
			requests: [{ on: 'create', nth: 2, what: 'answer late' }],
			keyChanges: [{ at: 16_313, noticedAfterMs: 20_000 }],
			ledgerTroubles: [{ nth: 0, isWritten: false }],
			acts: [{ at: 5_718, what: 'switch off' }],
		},
	'a create that was admitted is sent although another create has been told to wait meanwhile': {
		salt: 53_236,
		node: { items: 5 },
		service: { slowestAnswerMs: 1000, hanging: [0], maxUnfinished: 1, saysRetryAfter: true },
		requests: [{ on: 'read', nth: 0, what: "a firewall's 403" }],
		limits: [{ at: 965, maxUnfinished: 3, maxPerSecond: 0 }],
	},
	'a turn cannot be noted as begun, and the next try creates all the same: after a kill nobody knows of that turn':
		{
			node: { suspendAfter: 0.1, items: 2, ifSomeFail: 'stop', maxTries: 2, maxInFlight: 1 },
			service: { longestTaskMs: 10_000 },
			kills: [
				{ process: 0, of: 'turns', afterEffects: 8, isSeen: false, downMs: 1_000 },
				{ process: 0, of: 'callbacks', afterEffects: 0, isSeen: false, downMs: 1_000 },
			],
			ledgerTroubles: [{ nth: 0, isWritten: false }],
			acts: [{ at: 0, what: 'start' }],
			seeOther: [0],
		},
	'a check for callbacks whose read is refused reads the same task again after half a second': {
		node: { completion: 'trigger', items: 2, timeoutSeconds: 120 },
		callbacks: [{ nth: 0, what: 'lost' }],
		ledgerTroubles: [{ nth: 0, isWritten: false }],
		reads: { mostPerSecond: 1 },
	},
	'a run is killed before its node begins, and is retried twice at once: both retries order': {
		moreKills: [
			{ process: 0, of: 'first turns', afterEffects: 0, isSeen: false, downMs: 1_000 },
			{ process: 0, of: 'later turns', afterEffects: 0, isSeen: false, downMs: 1_000 },
		],
		storeOutages: [{ at: 0, forMs: 30_000 }],
		retriesTwice: true,
	},
	'a run that sleeps is retried: the run and its retry both create the failed task anew': {
		node: { suspendAfter: 0.02, timeoutSeconds: 86_400, retryFailed: 1 },
		service: { failing: [0] },
		retriesAsleep: [{ at: 1_329 }],
	},
	'a stopped run is retried twice: both retries create the failed task anew': {
		node: { suspendAfter: 0.02, timeoutSeconds: 86_400, retryFailed: 1 },
		service: { failing: [0] },
		acts: [{ at: 1_400, what: 'stop and retry' }],
		retriesTwice: true,
	},
	'a run that sleeps is retried, and takes its own refused try for another process: it stands aside for ever':
		{
			node: { suspendAfter: 0, maxTries: 3 },
			retriesAsleep: [{ at: 152 }],
		},
	'of two retries of a killed run one is killed, and its own retry orders what the other one has ordered':
		{
			node: { suspendAfter: 0.02 },
			requests: [
				{ on: 'create', nth: 0, what: '503 with Retry-After' },
				{ on: 'create', nth: 0, what: 'answer lost' },
			],
			strange: [{ on: 'create', nth: 0, what: 'answer trickles' }],
			moreKills: [
				{ process: 0, of: 'later turns', afterEffects: 0, isSeen: false, downMs: 1_000 },
				{ process: 0, of: 'first turns', afterEffects: 0, isSeen: false, downMs: 1_000 },
			],
			retriesTwice: true,
		},
	'a task that the service has forgotten gets five minutes more from each try of Retry On Fail': {
		node: { maxTries: 3, timeoutSeconds: 86_400 },
		forgotten: [{ nth: 0, afterMs: 0 }],
	},
	'the time of a task is up while a check sleeps, and one lost read ends it': {
		node: { completion: 'trigger', items: 2, timeoutSeconds: 20 },
		requests: [
			{ on: 'read', nth: 0, what: 'answer lost' },
			{ on: 'create', nth: 0, what: 'answer lost' },
		],
		callbacks: [{ nth: 0, what: 'lost' }],
		keyChanges: [{ at: 128, noticedAfterMs: 0 }],
	},
};

test.each(Object.entries(FOUND))('a history that once went wrong: %s', async (_, parts) => {
	expect((await simulate(plainBut(parts))).violations).toEqual([]);
});

test('the last checks outlast what the trigger remembers of a start that failed after the timeout', async () => {
	const { trace } = await simulate(
		plainBut({
			node: { completion: 'trigger', timeoutSeconds: 20 },
			callbacks: [{ nth: 0, what: 'lost' }],
			requests: [{ on: 'read', nth: 0, what: '503' }],
			acts: [{ at: 75_000, what: 'redeliver' }],
			ledgerTroubles: [{ nth: 0, isWritten: false }],
		}),
	);
	expect(trace.join('\n')).toContain('comes to Done');
	expect(trace.join('\n')).not.toContain('user: retries');
});

test('a create whose answer trickles for ever is given up after two minutes, and is in doubt', async () => {
	const { violations, trace } = await simulate(
		plainBut({
			node: { onError: 'continueRegularOutput', timeoutSeconds: 600, items: 2 },
			strange: [{ on: 'create', nth: 0, what: 'answer trickles' }],
		}),
	);
	expect(violations).toEqual([]);
	const out = trace.find((line) => line.includes('comes to Sink')) ?? '';
	expect(Number.parseFloat(out)).toBeGreaterThan(115);
	// A create in doubt has the next one wait.
	expect(Number.parseFloat(out)).toBeLessThan(330);
});
