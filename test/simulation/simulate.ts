import type { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';

import { BinaryDataService, DataDeduplicationService, ErrorReporter } from 'n8n-core';
import { Logger } from '@n8n/backend-common';
import { OutboundHttp } from '@n8n/backend-network';
import { Container } from '@n8n/di';
import type { IBinaryData, IDataDeduplicator, INodeExecutionData } from 'n8n-workflow';

import { SECOND } from '../durations';
import type { Settings } from '../service/settings';
import { missingTasks } from './callbackSentences';
import { type History, type PartlyHistory, PLAIN, plainBut, TROUBLED_MS } from './history';
import { type Act } from './troubles';
import type { Row } from '../workflow/n8n/database';
import { Randomness } from '../workflow/n8n/randomness';
import { HistoryTime } from '../workflow/n8n/time';
import { isStored } from './told';
import { ofDays, sentences, type Violation } from './sentences';
import { spend } from './spendDay';
import { NodeSources } from './world/nodeSources';
import type { Request } from './world/network';
import { forge } from './world/stranger';
import { World } from './world/world';

/** After the last fault everything has come to an end within this time, and an hour more where the clock was set back. */
const CALM_MS = 30 * 60_000;

/**
 * When every callback is made up for: the trigger's process remembers for five minutes a callback whose execution has
 * failed at its beginning, and a check comes once a minute.
 */
const MADE_UP_FOR_MS = 7 * 60_000;

/** A run that has shared its account with another one creates slowly for a long time. */
const LARGE_BATCH_MS = 2 * 3_600_000;

const MOST_KEPT_BYTES = 1_000;

const OWN = new NodeSources();

const UNLIMITED = { maxUnfinished: 0, maxPerSecond: 0 };

/** The world of the history that is under way. */
let world: World | undefined;

let isPrepared = false;

/** Puts the present world in the place of what n8n's engine reaches out to: HTTP, the log, the ledger. */
async function prepare(): Promise<void> {
	if (isPrepared) return;
	isPrepared = true;
	const log = (text: string) => world?.log(text);
	const logger = { info: log, warn: log, error: log, debug: () => {}, scoped: () => logger };
	Container.set(Logger, logger as never);
	Container.set(ErrorReporter, { error: () => undefined } as never);
	Container.set(BinaryDataService, {
		async store(_place: unknown, content: Readable | Buffer, data: object) {
			const file = Buffer.isBuffer(content) ? content : await buffer(content);
			// What n8n keeps elsewhere is not to stand in each stored execution.
			const kept = file.subarray(0, MOST_KEPT_BYTES);
			return { ...data, data: kept.toString('base64'), fileSize: `${file.length} B` };
		},
		async getAsBuffer({ id, data }: IBinaryData) {
			const content = id === undefined ? Buffer.from(data, 'base64') : world?.n8n.files.get(id);
			if (content === undefined) throw new Error(`ENOENT: no such file or directory, open '${id}'`);
			return Buffer.from(content);
		},
	} as never);
	const request = async (options: Request) => await world?.network.request(options);
	Container.set(OutboundHttp, { requests: () => ({ request }) } as never);
	const ledger = new Proxy({} as IDataDeduplicator, {
		get: (_, name: keyof IDataDeduplicator) => world?.n8n.ledger[name].bind(world.n8n.ledger),
	});
	await DataDeduplicationService.init(ledger);
	// What n8n's engine makes when it is first used, timers among it, is not to be part of the first history alone.
	await enact(PLAIN);
}

/**
 * Does something in a world of its own, in its time.
 *
 * @param work default: all that the history has in store
 */
async function enact(
	history: History,
	work: (here: World) => Promise<void> = happen,
	sources = OWN,
): Promise<World> {
	await prepare();
	const random = new Randomness(history.salt);
	try {
		return await HistoryTime.rule(random.stream(), async (time) => {
			world = new World(history, sources, random, time);
			await work(world);
			return world;
		});
	} finally {
		world = undefined;
	}
}

/**
 * Lets the user start the workflow in a plain history, but for some of its parts.
 *
 * @param taskOf the switches of the tasks of each item
 * @param items what the items have beside their prompts
 * @param goOn what happens from then on
 */
export async function enactRun(
	parts: PartlyHistory,
	taskOf: (index: number, attempt: number) => Settings,
	items: Array<Partial<INodeExecutionData>>,
	goOn: (here: World) => Promise<void>,
	sources = OWN,
): Promise<World> {
	const work = async (here: World) => {
		const { time, user, service } = here;
		service.script = (item, attempt) => taskOf(Number(item.split(' ').pop()), attempt);
		user.activate(true);
		await time.run(SECOND);
		user.start(items);
		await goOn(here);
	};
	return await enact(plainBut(parts), work, sources);
}

/**
 * Lets one history happen, and checks every sentence of the contract afterwards.
 *
 * @param sources the nodes that run in it
 */
export async function simulate(history: History, sources = OWN) {
	const here = await enact(history, happen, sources);
	const own = history.day.length > 0 ? ofDays : sentences;
	const violations = Object.entries(own).flatMap(([sentence, check]) =>
		check(here).map((what): Violation => ({ sentence, what })),
	);
	const [faults = [], exceptions = []] = [here.faults, here.exceptions].map((set) =>
		[...set].sort(),
	);
	return { violations, faults, exceptions, trace: here.lines };
}

async function happen(here: World): Promise<void> {
	const [day] = here.history.day;
	if (day) return await spend(here, day);
	plan(here);
	await here.time.run(TROUBLED_MS);
	await calmDown(here);
}

/** Enters what is to happen at its time. */
function plan(here: World): void {
	const { history, time, n8n, user, service } = here;
	const planAll = <T extends { at: number }>(list: T[], run: (each: T) => unknown) => {
		for (const each of list) time.later(each.at, () => run(each));
	};
	user.activate(true);
	time.later(100, () => user.start());
	planAll(history.limits, ({ maxUnfinished, maxPerSecond }) => {
		here.note('limits move');
		here.trace(
			`service: now lets ${maxUnfinished || 'any number of'} tasks be unfinished, and takes ${maxPerSecond || 'any number of'} creates a second`,
		);
		service.limits = { maxUnfinished, maxPerSecond };
	});
	planAll(history.keyChanges, ({ noticedAfterMs }) => {
		here.note('key changed');
		here.trace('service: has a new key for this account');
		service.changeKey();
		time.later(noticedAfterMs, () => {
			here.trace('user: enters the new key');
			n8n.credential = { ...n8n.credential, apiKey: service.key };
		});
	});
	for (const { endsBy, endsAt } of history.largeBatch) {
		time.later(endsAt, () => {
			const row = n8n.rows.find(({ start }) => start === 'Start');
			if (row?.status !== 'running') return;
			here.note(endsBy === 'itself' ? 'large batch' : `${endsBy} while a large batch is created`);
			here.endRun(row, endsBy);
		});
	}
	planAll(history.clockJumps, ({ byMs }) => here.setClock(byMs));
	const acts: Record<Act, () => unknown> = {
		stop: () => user.stop(),
		retry: () => user.retry(),
		'stop and retry': () => {
			user.stop();
			time.later(1_000, () => user.retry());
		},
		start: () => {
			here.note('started again by the user');
			user.start();
		},
		redeliver: () => user.redeliver(),
		'switch off': () => {
			here.note('workflow switched off');
			user.activate(false);
			time.later(20_000, () => user.activate(true));
		},
		forge: () => forge(here),
		edit: () => {
			here.note('trigger edited');
			here.trace('user: breaks an expression of the trigger');
			n8n.isTriggerBroken = true;
			time.later(10_000, () => {
				here.trace('user: mends the expression');
				n8n.isTriggerBroken = false;
			});
		},
	};
	planAll(history.acts, ({ what }) => acts[what]());
	planAll(history.retriesAsleep, () => user.retryAsleep());
}

/** The faults have stopped: n8n goes on by itself, and then the user does what the documentation tells her to. */
async function calmDown(here: World): Promise<void> {
	const { history, time, n8n, user, service } = here;
	// A large batch is still to be under way when the user comes to look.
	if (history.largeBatch.length === 0) service.limits = UNLIMITED;
	n8n.credential = { ...n8n.credential, apiKey: service.key };
	n8n.isTriggerBroken = false;
	here.trace('world: the faults stop');
	await time.run(TROUBLED_MS + 60_000);
	if (!n8n.isActive) user.activate(true);
	await time.run(TROUBLED_MS + MADE_UP_FOR_MS);
	here.notMadeUpFor = missingTasks(here).map(({ id }) => id);
	service.limits = UNLIMITED;
	// A retry starts in any case, so the user looks first whether the task has started meanwhile.
	const isFailedStart = ({ start, status, begin }: Row) =>
		start === 'Trigger' &&
		(status === 'error' || status === 'crashed') &&
		service.tasks.some(({ id }) => begin.includes(id) && n8n.starts(id) === 0);
	for (let retries = 0; retries < 40 && user.retry(isFailedStart); retries++) {
		await time.run(time.now + 10_000);
	}
	// The tasks of a large batch whose run was killed a moment ago are to end before that.
	if (history.largeBatch.length > 0) await time.run(time.now + 60_000);
	user.redeliver();
	// What was stored when a run went to sleep goes on only where somebody retries it.
	const wasAsleep = (row: Row) => isOfRun(row) && row.status === 'crashed' && isStored(row);
	while (user.retry(wasAsleep, history.retryWith)) await time.run(time.now + 10_000);
	await mend(here);
	await retryKilled(here);
	const lateMs =
		20 * (history.slowStores[0] ?? 0) +
		LARGE_BATCH_MS * history.largeBatch.length +
		2 * SECOND * (history.longPauses[0]?.seconds ?? 0);
	// n8n keeps the moment that an execution waits for by the wall clock.
	const end = TROUBLED_MS + CALM_MS + here.setBackMs + lateMs;
	await time.run(Math.min(end, time.now + 60_000));
	while (time.now < end && n8n.isBusy) await time.run(Math.min(end, time.now + 60_000));
}

const isOfRun = ({ start }: Row) => start === 'Start';

/** The user changes the node, so that the service takes every item, and retries what has failed. */
async function mend({ history, n8n, user, time }: World): Promise<void> {
	const [unfit] = history.unfit;
	if (!unfit) return;
	n8n.isMended = true;
	if (unfit.priceFactor > 1) n8n.setPrice(n8n.priceUsd * unfit.priceFactor);
	const hasFailed = (row: Row) => isOfRun(row) && row.status === 'error' && !row.isOfSaved;
	for (let retries = 0; retries < 5 && user.retry(hasFailed, 'saved'); retries++) {
		await time.run(time.now + 10_000);
	}
}

/** The user retries whatever was killed, and what was killed then. n8n may learn of a kill a minute later. */
async function retryKilled({ history, user, time }: World): Promise<void> {
	if (history.moreKills.length === 0) return;
	for (let rounds = 0; rounds < 6; rounds++) {
		await time.run(time.now + 90_000);
		const isKilled = (row: Row) => isOfRun(row) || row.start === 'Again';
		user.retry((row) => isKilled(row) && row.status === 'crashed', history.retryWith);
	}
}
