import { HOUR, MINUTE, SECOND } from '../durations';
import type { Row } from '../workflow/n8n/database';
import { SUB } from '../workflow/n8n/executions';
import type { Day } from './day';
import type { World } from './world/world';

/** After the last trouble everything has come to an end within this time. */
const CALM_MS = 3 * HOUR;

/** A user's day: the workflow is started, a trouble comes and goes, and the user does what the pages say. */
export async function spend(here: World, day: Day): Promise<void> {
	const { time, n8n, user, service } = here;
	const percent = () =>
		day.isSpread ? here.random.between(50, 150, 'duration', service.tasks.length) : 100;
	service.script = () => ({ latencyMs: (day.taskSeconds * SECOND * percent()) / 100 });
	if (day.workflow === 'triggered') user.activate(true);
	await time.run(day.second * SECOND);
	const begunAt = time.now;
	const first = user.start();
	for (const afterMs of day.others) {
		// n8n starts nothing without its database.
		time.later(afterMs, () => void (n8n.database.isAway || user.start()));
	}
	const { trouble } = day;
	if (trouble) {
		time.later(trouble.at - time.now, () => {
			here.note(trouble.what);
			here.trace(`world: ${trouble.what} for ${trouble.forMs / SECOND} s`);
			if (trouble.what === 'database away') n8n.database.goAway(trouble.forMs);
		});
	}
	await END[day.ends](here, day, first, begunAt);
	const calmAt = Math.max(time.now, (trouble?.at ?? 0) + (trouble?.forMs ?? 0));
	await rest(here, calmAt + CALM_MS);
	await time.run(Math.max(time.now, calmAt));
	await retryAll(here, isKilledStart);
	await retryAll(here, (_, row) => isLostCheck(day, row));
}

type Match = (here: World, row: Row) => boolean;

/** An execution of the trigger that was killed before the end of its workflow, and no other one has come to it for its task. */
const isKilledStart: Match = ({ n8n, service }, { start, status, begin }) =>
	start === 'Trigger' &&
	status === 'crashed' &&
	service.tasks.some(({ id }) => begin.includes(id) && n8n.starts(id) === 0 && n8n.hasBroken(id));

/** A check for callbacks that was killed, or had to give up: a service may say for five minutes that it knows no task. */
const isLostCheck = ({ trouble }: Day, { start, status }: Row): boolean =>
	start === SUB &&
	(status === 'crashed' || (status === 'error' && (trouble?.forMs ?? 0) > 5 * MINUTE));

/** When all is calm, the user retries what the pages tell her to. */
async function retryAll(here: World, isMeant: Match): Promise<void> {
	const { time, user } = here;
	while (user.retry((row) => isMeant(here, row))) await time.run(time.now + SECOND);
	await rest(here, time.now + CALM_MS);
}

/** Lets time pass until nothing runs and nothing sleeps. */
async function rest({ time, n8n }: World, until: number): Promise<void> {
	while (time.now < until && n8n.isBusy) await time.run(Math.min(until, time.now + MINUTE));
}

/** The execution of the user's workflow that does the work, which may be a called one. */
const workOf = ({ n8n }: World, row: Row): Row =>
	n8n.rows.find(({ caller, start }) => caller?.executionId === row.id && start !== SUB) ?? row;

/** Kills the process of an execution that is under way. @returns whether it was */
function kill(here: World, row: Row): boolean {
	const [main] = here.n8n.processes.living('main');
	const process = row.status === 'running' ? row.process : main;
	if (!process || !['running', 'waiting'].includes(row.status)) return false;
	process.die();
	return true;
}

/** Nobody can stop or retry anything without n8n's database. */
async function databaseIsBack({ time, n8n }: World): Promise<void> {
	while (n8n.database.isAway) await time.run(time.now + SECOND);
}

const hasFailed = ({ status }: Row) => ['error', 'crashed', 'canceled'].includes(status);

/** Waits until n8n has noticed that an execution has failed. */
async function failed({ time }: World, row: Row): Promise<boolean> {
	const until = time.now + 2 * MINUTE;
	while (time.now < until && !hasFailed(row)) await time.run(time.now + SECOND);
	return hasFailed(row);
}

type End = (here: World, day: Day, first: Row, begunAt: number) => Promise<void>;

/** How the first execution ends, and what the user does then. */
const END: Record<Day['ends'], End> = {
	'by itself': async () => await Promise.resolve(),

	killed: async (here, day, first, begunAt) => {
		await here.time.run(begunAt + day.endsAt);
		await killAndRetry(here, day, workOf(here, first));
	},

	'killed twice': async (here, day, first, begunAt) => {
		const { time, n8n } = here;
		await time.run(begunAt + day.endsAt);
		const own = workOf(here, first);
		const retry = await killAndRetry(here, day, own);
		if (!retry) return;
		await time.run(time.now + day.diesAgainMs);
		const last = await killAndRetry(here, day, retry);
		// A retry that was killed before n8n stored anything is one of which n8n tells the next ones nothing: the pages say so.
		if (!last || retry.sleeps === 0) return;
		await rest(here, time.now + CALM_MS);
		await databaseIsBack(here);
		here.note('the first execution retried again after its retries');
		n8n.executions.retry(own);
	},

	stopped: async (here, day, first, begunAt) => {
		await here.time.run(begunAt + day.endsAt);
		await databaseIsBack(here);
		here.user.stop((row) => row === first);
	},

	'fails twice': async (here, _day, first) => {
		const { service, n8n, time } = here;
		const own = workOf(here, first);
		const { credential } = n8n;
		n8n.credential = { ...credential, apiKey: 'sk-of-somebody-else' };
		if (!(await failed(here, own))) return;
		await databaseIsBack(here);
		here.note('retried again after a retry that failed');
		const retry = n8n.executions.retry(own);
		if (retry) await failed(here, retry);
		n8n.credential = { ...credential, apiKey: service.key };
		await time.run(time.now + 10 * SECOND);
		await databaseIsBack(here);
		here.trace('user: enters the right key, and retries the first execution again');
		n8n.executions.retry(own);
	},
};

/** @returns the retry, if the execution was killed and n8n has something to begin with */
async function killAndRetry(here: World, day: Day, row: Row): Promise<Row | undefined> {
	if (!kill(here, row) || !(await failed(here, row))) return undefined;
	await here.time.run(here.time.now + day.retriesAfterMs);
	await databaseIsBack(here);
	here.note('a killed run retried');
	return here.n8n.executions.retry(row);
}
