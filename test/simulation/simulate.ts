import type { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';

import { BinaryDataService, DataDeduplicationService, ErrorReporter } from 'n8n-core';
import { Logger } from '@n8n/backend-common';
import { OutboundHttp } from '@n8n/backend-network';
import { Container } from '@n8n/di';
import type { IBinaryData, IDataDeduplicator } from 'n8n-workflow';

import { Randomness } from '../workflow/n8n/randomness';
import { HistoryTime } from '../workflow/n8n/time';
import { type History, PLAIN } from './history';
import { sentences, type Violation } from './sentences/sentences';
import { spend } from './spend';
import type { Request } from './world/network';
import { NodeSources } from './world/nodeSources';
import { World } from './world/world';

const MOST_KEPT_BYTES = 1_000;

const OWN = new NodeSources();

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

/** Lets all happen that a history has in store, in a world of its own and in its time. */
async function enact(history: History, sources = OWN): Promise<World> {
	await prepare();
	const random = new Randomness(history.salt);
	try {
		return await HistoryTime.rule(random.stream(), async (time) => {
			world = new World(history, sources, random, time);
			await spend(world);
			return world;
		});
	} finally {
		world = undefined;
	}
}

/**
 * Lets one history happen, and checks every sentence of the contract afterwards.
 *
 * @param sources the nodes that run in it
 */
export async function simulate(history: History, sources = OWN) {
	const here = await enact(history, sources);
	const violations = Object.entries(sentences).flatMap(([sentence, { user, check }]) =>
		check(here).map((what): Violation => ({ sentence, user, what })),
	);
	const [faults = [], exceptions = []] = [here.faults, here.exceptions].map((set) =>
		[...set].sort(),
	);
	return { violations, faults, exceptions, trace: here.lines };
}
