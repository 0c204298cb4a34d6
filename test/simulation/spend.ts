import { HOUR, MINUTE, SECOND } from '../durations';
import { isTerminal, type Row } from '../workflow/n8n/database';
import { SUB } from '../workflow/n8n/executions';
import { type History, TROUBLED_MS } from './history';
import { missingTasks } from './sentences/trigger';
import type { World } from './world/world';

/** After the last trouble everything has come to an end within this time, and an hour more where the clock was set back. */
const CALM_MS = 3 * HOUR;

const UNLIMITED = { maxUnfinished: 0, maxPerSecond: 0 };

const isRun = ({ start }: Row) => start === 'Start';

const hasFailed = ({ status }: Row) => isTerminal(status) && status !== 'success';

/** What a user lives through: the workflow is started, troubles come and go, and the user does what the pages say. */
export async function spend(here: World): Promise<void> {
	const { history, time, user, n8n, service } = here;
	user.activate(true);
	await time.run(history.second * SECOND);
	here.startedAt = time.now;
	const first = user.start();
	plan(here);
	await END[history.ends](here, first);
	const [trouble] = history.trouble;
	const troubleEnds = trouble ? trouble.at + trouble.forMs : 0;
	const calmAt = Math.max(
		time.now,
		troubleEnds,
		hasFaults(history) ? here.startedAt + TROUBLED_MS : 0,
	);
	await rest(here, calmAt);
	await time.run(Math.max(time.now, calmAt));
	await databaseIsBack(here);
	here.trace('world: the faults stop');
	service.limits = UNLIMITED;
	n8n.ledger.isCalm = true;
	n8n.credential = { ...n8n.credential, apiKey: service.key };
	n8n.isTriggerBroken = false;
	if (!n8n.isActive) user.activate(true);
	await rest(here);
	here.notMadeUpFor = missingTasks(here).map(({ id }) => id);
	await helpOut(here);
}

const hasFaults = ({ requests, callbacks, limits, keyChanges, clockJumps, kills, acts }: History) =>
	[requests, callbacks, limits, keyChanges, clockJumps, kills, acts].some(
		({ length }) => length > 0,
	);

/** Enters what is to happen at its time. */
function plan(here: World): void {
	const { history, time, n8n, user, service } = here;
	for (const afterMs of history.others) {
		// n8n starts nothing without its database.
		time.later(afterMs, () => void (n8n.database.isAway || user.start()));
	}
	for (const { at, what, forMs } of history.trouble) {
		time.later(at - time.now, () => {
			here.note(what);
			here.trace(`world: ${what} for ${forMs / SECOND} s`);
			if (what === 'database away') n8n.database.goAway(forMs);
		});
	}
	for (const { at, maxUnfinished, maxPerSecond } of history.limits) {
		time.later(at, () => {
			here.note('limits move');
			const most = maxUnfinished || 'any number of';
			here.trace(
				`service: lets ${most} tasks be unfinished, takes ${maxPerSecond} creates a second`,
			);
			service.limits = { maxUnfinished, maxPerSecond };
		});
	}
	for (const { at, noticedAfterMs } of history.keyChanges) {
		time.later(at, () => {
			here.note('key changed');
			here.trace('service: has a new key for this account');
			service.changeKey();
			time.later(noticedAfterMs, () => {
				here.trace('user: enters the new key');
				n8n.credential = { ...n8n.credential, apiKey: service.key };
			});
		});
	}
	for (const { at, byMs } of history.clockJumps) time.later(at, () => here.setClock(byMs));
	for (const { at, what } of history.acts) time.later(at, () => user.act(what));
}

type End = (here: World, first: Row) => Promise<void>;

/** How the first execution ends. */
const END: Record<History['ends'], End> = {
	'by itself': async () => await Promise.resolve(),

	killed: async (here, first) => {
		await here.time.run(here.startedAt + here.history.endsAt);
		await killAndRetry(here, workOf(here, first));
	},

	'killed twice': async (here, first) => {
		const { time, history } = here;
		await time.run(here.startedAt + history.endsAt);
		const retry = await killAndRetry(here, workOf(here, first));
		if (!retry) return;
		await time.run(time.now + history.diesAgainMs);
		await killAndRetry(here, workOf(here, retry));
	},

	stopped: async (here, first) => {
		await here.time.run(here.startedAt + here.history.endsAt);
		await databaseIsBack(here);
		here.user.stop((row) => row === first);
	},

	'fails twice': async (here, first) => {
		const { service, n8n } = here;
		const { credential } = n8n;
		n8n.credential = { ...credential, apiKey: 'sk-of-somebody-else' };
		let row: Row | undefined = workOf(here, first);
		for (let retries = 0; retries < 2 && row && (await failed(here, row)); retries++) {
			await databaseIsBack(here);
			if (retries > 0) {
				here.note('a retry that failed is retried');
				n8n.credential = { ...credential, apiKey: service.key };
			}
			row = n8n.executions.retry(row);
		}
	},
};

/** The execution of the user's workflow that does the work, which may be a called one. */
const workOf = ({ n8n }: World, row: Row): Row =>
	n8n.rows.find((each) => each.caller?.executionId === row.id && isRun(each)) ?? row;

/** Waits until n8n has noticed that an execution has failed. */
async function failed({ time }: World, row: Row): Promise<boolean> {
	const until = time.now + 2 * MINUTE;
	while (time.now < until && !hasFailed(row)) await time.run(time.now + SECOND);
	return hasFailed(row);
}

/** Nobody can stop or retry anything without n8n's database. */
async function databaseIsBack({ time, n8n }: World): Promise<void> {
	while (n8n.database.isAway) await time.run(time.now + SECOND);
}

/** @returns the retry, if the execution was killed and n8n has something to begin with */
async function killAndRetry(here: World, row: Row): Promise<Row | undefined> {
	const { n8n, time, history } = here;
	const process = row.status === 'running' ? row.process : n8n.processes.living('main')[0];
	if (!process || !['running', 'waiting'].includes(row.status)) return undefined;
	process.die();
	if (!(await failed(here, row))) return undefined;
	await time.run(time.now + history.retriesAfterMs);
	await databaseIsBack(here);
	here.note('a killed run retried');
	const retry = n8n.executions.retry(row);
	// A retry of a calling workflow orders all anew, as the pages say.
	if (history.retriesTwice && isRun(row) && n8n.executions.retry(row))
		here.note('two retries at once');
	return retry;
}

type Match = (row: Row) => boolean;

/**
 * Lets time pass until nothing runs and nothing sleeps. Of single faults the user looks after what was killed: in queue mode
 * n8n has soon erased it.
 */
async function rest(here: World, until = here.time.now + CALM_MS + here.setBackMs): Promise<void> {
	const { time, n8n, user, history } = here;
	const isKilled: Match = (row) => isRun(row) && row.status === 'crashed';
	const looks = history.kills.length + history.sleeps.length > 0;
	let [retries, quiet] = [0, 0];
	while (time.now < until && (n8n.isBusy || (looks && quiet < 3))) {
		await time.run(Math.min(until, time.now + (looks ? 10 * SECOND : MINUTE)));
		if (!looks) continue;
		const isRetried =
			retries < 12 && !n8n.database.isAway && user.retry(isKilled, history.retryWith);
		if (isRetried) retries++;
		quiet = isRetried || n8n.isBusy ? 0 : quiet + 1;
	}
}

/** The user does what the pages tell her to, until nothing is left to do. */
async function helpOut(here: World): Promise<void> {
	const { history, n8n, user, time, service } = here;
	const retryAll = async (isMeant: Match, workflow?: 'saved') => {
		let retries = 0;
		while (retries < 20 && user.retry(isMeant, workflow)) {
			retries++;
			await time.run(time.now + SECOND);
		}
		await rest(here);
		return retries;
	};
	/** A retry starts in any case, so the user looks first whether the task has started meanwhile. */
	const isFailedStart: Match = (row) =>
		row.start === 'Trigger' &&
		hasFailed(row) &&
		service.tasks.some(
			({ id }) => row.begin.includes(id) && n8n.starts(id) === 0 && n8n.hasBroken(id),
		);
	/** A check for callbacks that was killed, or had to give up. */
	const isLostCheck: Match = (row) => row.start === SUB && hasFailed(row);
	if (history.workflow === 'triggered') {
		for (let rounds = 0; rounds < 5; rounds++) {
			if ((await retryAll(isFailedStart)) + (await retryAll(isLostCheck)) === 0) break;
		}
		user.redeliver();
		await rest(here);
		await retryAll(isFailedStart);
	}
	const [unfit] = history.unfit;
	if (!unfit) return;
	n8n.isMended = true;
	if (unfit.priceFactor > 1) n8n.setPrice(n8n.priceUsd * unfit.priceFactor);
	await retryAll((row) => isRun(row) && row.status === 'error' && !row.isOfSaved, 'saved');
}
