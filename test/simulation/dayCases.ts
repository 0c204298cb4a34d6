import { MINUTE, SECOND } from '../durations';
import type { Day } from './day';
import { type History, plainBut, spendDay } from './history';

/** One node, one item, and nothing goes wrong. */
const CALM: Day = {
	...{ isWarm: true, workflow: 'one node', second: 20, suspendAfter: 5, items: 1, places: 10 },
	...{
		taskSeconds: 45,
		isSpread: false,
		fileSeconds: 0,
		limitSeconds: 0,
		others: [],
		trouble: undefined,
	},
	...{ ends: 'by itself', endsAt: 60_000, diesAgainMs: 50, retriesAfterMs: 10_000 },
};

/** @param n8n default: one process */
export const dayBut = ({ n8n = 'one process', ...parts }: DayCase): History =>
	spendDay(plainBut({ n8n, day: [{ ...CALM, ...parts }] }));

type DayCase = Partial<Day> & { n8n?: History['n8n'] };

const blip = (what: NonNullable<Day['trouble']>['what'], forMs: number, at = 70_000) => ({
	trouble: { on: 'creates' as const, what, at, forMs },
});

const BATCH = { items: 40, places: 4, taskSeconds: 12, isSpread: true } as const;

/** Days that once went wrong, by what went wrong. */
export const DAYS: Record<string, DayCase> = {
	'a picture of 90 s is out after 139 s': { taskSeconds: 90, second: 45 },
	'a run stops in the middle when another run learns the second of the look': {
		...{ ...BATCH, isWarm: false, items: 60, taskSeconds: 20, others: [200_000] },
	},
	'downloads make a turn miss the look': { ...BATCH, items: 60, taskSeconds: 20, fileSeconds: 12 },
	'a loop of short rounds is never stored': {
		...{ workflow: 'loop', items: 20, taskSeconds: 20, ends: 'killed', endsAt: 300_000 },
	},
	'a second node is cancelled by the time limit': {
		...{ workflow: 'in a row', taskSeconds: 140, limitSeconds: 300, suspendAfter: 1 },
	},
	'a retry pays twice at a second node': {
		...{ workflow: 'in a row', items: 3, taskSeconds: 60, ends: 'killed twice', endsAt: 82_000 },
	},
	'a retry pays twice at a first node, since it was killed at a second one': {
		...{ n8n: 'queue mode', workflow: 'in a row', items: 3, taskSeconds: 60 },
		...{ ends: 'killed twice', endsAt: 9_000, diesAgainMs: 3_000, retriesAfterMs: 2_000 },
	},
	'a file that comes late has the time limit cancel all items': {
		...{ taskSeconds: 280, fileSeconds: 30, limitSeconds: 300 },
	},
	'the rounds of a loop order until the time limit cancels them': {
		...{ workflow: 'loop', items: 12, taskSeconds: 120, isSpread: true, limitSeconds: 300 },
	},
	'a file that waits for the next turn has the time limit cancel all items': {
		...{ isWarm: false, items: 12, places: 4, taskSeconds: 120, isSpread: true },
		...{ fileSeconds: 30, limitSeconds: 300 },
	},
	'reads that fail until the time limit have it cancel all items': {
		...{ items: 8, places: 10, taskSeconds: 200, limitSeconds: 300 },
		trouble: { on: 'all requests', what: 'blip: 503', at: 30_000, forMs: 10 * MINUTE },
	},
	'a file that comes late keeps a caller waiting that hangs up': {
		...{ workflow: 'hangs up', taskSeconds: 45, fileSeconds: 30 },
	},
	'a second retry is refused with a false sentence': { ends: 'fails twice' },
	'a database that is away when a run goes to sleep leaves it running for ever': {
		...{ ...BATCH, ...blip('database away', 10 * SECOND, 113_000) },
	},
	'ten seconds of 404 fail all items that are left': {
		...BATCH,
		...blip('blip: 404 as text', 10 * SECOND),
	},
	'a minute of 401 fails all items that are left': { ...BATCH, ...blip('blip: 401', MINUTE) },
	'five minutes of 403 fail all items that are left': {
		...BATCH,
		...blip('blip: 403 as a page', 5 * MINUTE),
	},
	'five minutes without a service': { ...BATCH, ...blip('service away', 5 * MINUTE) },
	'a caller is stopped while the called workflow orders': {
		...{ ...BATCH, workflow: 'called', ends: 'stopped', endsAt: 31_000 },
	},
	'a caller is stopped while the called workflow orders on a worker': {
		...{ ...BATCH, n8n: 'queue mode', workflow: 'called', ends: 'stopped', endsAt: 31_000 },
	},
	'a kill while files are fetched behind the trigger leaves tasks without an end': {
		...{ workflow: 'triggered', items: 12, taskSeconds: 12, fileSeconds: 60 },
		...{ ends: 'killed', endsAt: 24_000 },
	},
	'two hours of 404 leave finished tasks that reach no trigger': {
		...{ workflow: 'triggered', items: 3 },
		trouble: { on: 'all requests', what: 'blip: 404 as JSON', at: 60_000, forMs: 120 * MINUTE },
	},
};
