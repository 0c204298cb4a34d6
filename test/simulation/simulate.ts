import { BinaryDataService, DataDeduplicationService, ErrorReporter } from 'n8n-core';
import { Logger } from '@n8n/backend-common';
import { OutboundHttp } from '@n8n/backend-network';
import { Container } from '@n8n/di';
import type { IDataDeduplicator } from 'n8n-workflow';

import { isUnwatched } from './exceptions';
import { type History, PLAIN, TROUBLED_MS } from './history';
import { sentences, type Violation } from './sentences';
import type { Row } from './world/database';
import type { NodeSources } from './world/nodeSources';
import { Randomness } from './world/randomness';
import type { Request } from './world/network';
import type { ServiceTask } from './world/service';
import { HistoryTime } from './world/time';
import { TRIGGER_PATH } from './world/workflow';
import { World } from './world/world';

/** What a history came to. */
export interface Outcome {
	violations: Violation[];
	/** The faults that really happened. */
	faults: string[];
	/** What was not as the contract wants it, since n8n allows no better. */
	exceptions: string[];
	/** What happened, line by line. */
	trace: string[];
}

/** After the last fault everything has come to an end within this time, and an hour more where the clock was set back. */
export const CALM_MS = 30 * 60_000;

let world: World | undefined;

function present(): World {
	if (!world) throw new Error('No history is under way');
	return world;
}

let isPrepared = false;

/** Puts the present world in the place of what n8n's engine reaches out to: HTTP, the log, the ledger. */
async function prepare(sources: NodeSources): Promise<void> {
	if (isPrepared) return;
	isPrepared = true;
	const log =
		(level: string) =>
		(text: string): void =>
			world?.log(level, text);
	const logger = {
		info: log('info'),
		warn: log('warn'),
		error: log('error'),
		debug: () => undefined,
		scoped: () => logger,
	};
	Container.set(Logger, logger as never);
	Container.set(ErrorReporter, { error: () => undefined } as never);
	Container.set(BinaryDataService, {
		async store(_place: unknown, content: AsyncIterable<Buffer>, data: object) {
			const chunks: Buffer[] = [];
			for await (const chunk of content) chunks.push(chunk);
			const file = Buffer.concat(chunks);
			return { ...data, data: file.toString('base64'), fileSize: `${file.length} B` };
		},
	} as never);
	const request = async (options: Request) => await present().network.request(options);
	Container.set(OutboundHttp, { requests: () => ({ request }) } as never);
	const ledger = new Proxy({} as IDataDeduplicator, {
		get: (_, name) => {
			const target = present().n8n.ledger;
			return (...args: unknown[]) =>
				(target[name as keyof IDataDeduplicator] as (...args: unknown[]) => unknown)(...args);
		},
	});
	await DataDeduplicationService.init(ledger);
	// What n8n's engine makes when it is first used, timers among it, is not to be part of the first history alone.
	await happen(PLAIN, sources);
}

/** Does something in a world of its own, in its time. What the history has in store, limits and acts, is left out. */
export async function enact(
	history: History,
	sources: NodeSources,
	work: (here: World) => Promise<void>,
): Promise<World> {
	await prepare(sources);
	return await inWorld(history, sources, work);
}

/**
 * Lets one history happen, and checks every sentence of the contract afterwards.
 *
 * @param sources the nodes that run in it
 */
export async function simulate(history: History, sources: NodeSources): Promise<Outcome> {
	await prepare(sources);
	const here = await happen(history, sources);
	const violations = Object.entries(sentences).flatMap(([sentence, check]) =>
		check(here).map((what): Violation => ({ sentence, what })),
	);
	const [faults, exceptions] = [here.faults, here.exceptions].map((set) => [...set].sort());
	return { violations, faults, exceptions, trace: here.lines } as Outcome;
}

async function happen(history: History, sources: NodeSources): Promise<World> {
	return await inWorld(history, sources, async (here) => {
		plan(here);
		await here.time.run(TROUBLED_MS);
		await calmDown(here);
	});
}

async function inWorld(
	history: History,
	sources: NodeSources,
	work: (here: World) => Promise<void>,
): Promise<World> {
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

/** Enters what is to happen at its time. */
function plan(here: World): void {
	const { history, time, n8n, user, service } = here;
	user.activate(true);
	time.later(100, () => user.start());
	for (const { at, maxUnfinished, maxPerSecond } of history.limits) {
		time.later(at, () => {
			here.note('limits move');
			here.trace(
				`service: now lets ${maxUnfinished || 'any number of'} tasks be unfinished, and takes ${maxPerSecond || 'any number of'} creates a second`,
			);
			Object.assign(service, { maxUnfinished, maxPerSecond });
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
	for (const { at, byMs } of history.clockJumps) {
		time.later(at, () => here.setClock(byMs));
	}
	for (const { at, what } of history.acts) {
		time.later(at, () => {
			switch (what) {
				case 'stop':
					return user.stop();
				case 'retry':
					return void user.retry();
				case 'stop and retry':
					user.stop();
					return time.later(1_000, () => user.retry());
				case 'start':
					here.note('started again by the user');
					return user.start();
				case 'redeliver':
					return user.redeliver();
				case 'start again':
					return user.redeliver(true);
				case 'switch off':
					here.note('workflow switched off');
					user.activate(false);
					return time.later(20_000, () => user.activate(true));
				case 'forge':
					return service.forge();
				case 'edit':
					here.note('trigger edited');
					here.trace('user: breaks an expression of the trigger');
					n8n.events = 'broken';
					return time.later(10_000, () => {
						here.trace('user: mends the expression');
						n8n.events = 'both';
					});
			}
		});
	}
}

/** Whether nothing but its lost callback kept a task from starting the workflow of the trigger. */
function isMissing(here: World, task: ServiceTask): boolean {
	const { history, n8n } = here;
	const { id, webhookUrl, endsAt, createdAt, by } = task;
	const row = n8n.rows.get(by.replace('execution ', ''));
	return (
		webhookUrl?.includes(TRIGGER_PATH) === true &&
		n8n.starts(id) === 0 &&
		row?.status === 'success' &&
		row.data.includes(id) &&
		endsAt < createdAt + history.node.timeoutSeconds * 1000 - 5_000 &&
		!n8n.hasBroken(id) &&
		// n8n keeps the moment of the next check by the wall clock.
		here.setBackMs + here.setForwardMs === 0
	);
}

/** The faults have stopped: n8n goes on by itself, and then the user does what the documentation tells her to. */
async function calmDown(here: World): Promise<void> {
	const { time, n8n, user, service } = here;
	Object.assign(service, { maxUnfinished: 0, maxPerSecond: 0 });
	n8n.credential = { ...n8n.credential, apiKey: service.key };
	n8n.events = 'both';
	here.trace('world: the faults stop');
	await time.run(TROUBLED_MS + 60_000);
	if (!n8n.isActive) user.activate(true);
	await time.run(TROUBLED_MS + CALM_MS / 3);
	const missing = service.tasks.filter((task) => isMissing(here, task));
	here.notMadeUpFor = missing.filter((task) => !isUnwatched(here, task)).map(({ id }) => id);
	// A retry starts in any case, so the user looks first whether the task has started meanwhile.
	const isFailedStart = ({ start, status, begin }: Row) =>
		start === 'Trigger' &&
		status === 'error' &&
		service.tasks.some(({ id }) => begin.includes(id) && n8n.starts(id) === 0);
	for (let retries = 0; retries < 40 && user.retry(isFailedStart); retries++) {
		await time.run(time.now + 10_000);
	}
	user.redeliver();
	await time.run(time.now + 120_000);
	user.redeliver(true);
	// n8n keeps the moment that an execution waits for by the wall clock.
	const end = TROUBLED_MS + CALM_MS + here.setBackMs;
	await time.run(Math.min(end, time.now + 60_000));
	while (time.now < end && n8n.isBusy) await time.run(Math.min(end, time.now + 60_000));
}
