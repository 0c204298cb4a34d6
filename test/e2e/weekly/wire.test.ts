import { setTimeout as sleep } from 'node:timers/promises';
import { randomBytes } from 'node:crypto';

import { until } from '../../n8n/client';
import { HOST } from '../../n8n/ports';
import { LEAN, shortMinute } from '../../n8n/settings';
import { missingPostgres, OF_THE_MACHINE, sql } from '../cluster';
import { unless } from '../needs';
import { itemsOf, type Run, succeeded } from '../run';
import { openScene } from '../scene';
import { Stage } from '../stage';
import { type Fate, Wire } from '../wire';

/**
 * n8n in one process, on a PostgreSQL that goes away just as a run goes to sleep, or begins a turn. It is cut off at the very
 * words that n8n says to it then.
 */

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const MINUTE_HERE = 10 * SECOND;

const COUNT = 12;

type Moment = (words: string) => boolean;

const says =
	(what: RegExp): Moment =>
	(words) =>
		what.test(words);

/** The run asks before it sleeps whether the database answers. */
const asks = says(/SELECT .* FROM "public"."processed_data"/);
/** n8n stores a run that goes to sleep, in a transaction. */
const stores = says(/UPDATE "public"."execution_entity" SET "mode" = .*"waitTill" = /);
/** n8n takes up a run that sleeps. */
const takesUp = says(
	/UPDATE "public"."execution_entity" SET "waitTill" = \S+, "status" = .* AND "status" = /,
);
/** The row of a turn. */
const begins = says(/INSERT INTO "public"."processed_data"/);

/** The end of a transaction that has said so. */
function ends(isInside: Moment): Moment {
	let isHere = false;
	return (words) => {
		isHere ||= isInside(words);
		return isHere && words.includes('COMMIT');
	};
}

unless(missingPostgres(), 'PostgreSQL away').describe('PostgreSQL is away', () => {
	const name = `media_generation_wire_${randomBytes(4).toString('hex')}`;
	let wire: Wire;
	const scene = openScene({
		clears: false,
		open: async () => {
			wire = await Wire.to(OF_THE_MACHINE.postgresPort);
			sql(OF_THE_MACHINE, `create database ${name}`);
			return await Stage.open({
				env: {
					...LEAN,
					...shortMinute(MINUTE_HERE),
					DB_TYPE: 'postgresdb',
					DB_POSTGRESDB_HOST: HOST,
					DB_POSTGRESDB_PORT: String(wire.port),
					DB_POSTGRESDB_USER: 'postgres',
					DB_POSTGRESDB_DATABASE: name,
				},
			});
		},
	});
	// After the scene was closed.
	afterAll(async () => {
		await wire?.close();
		sql(OF_THE_MACHINE, `drop database if exists ${name} with (force)`);
	}, MINUTE);

	/** @param when the wire is cut in a later turn that orders, or when the run sleeps after that */
	async function cutIn(
		title: string,
		when: 'turn' | 'sleep',
		isHere: Moment,
		fate: Fate,
		awayMs: number,
	): Promise<Run> {
		const run = await scene.startTurns(title, COUNT, { byWebhook: true });
		await run.inALaterTurn();
		if (when === 'sleep') {
			await run.asleep(run.sleeps + 1);
			await run.suspended();
		}
		wire.cutAt(isHere, fate);
		await wire.untilCut(3 * MINUTE);
		const cutAt = Date.now();
		const before = run.tasks.length;
		await sleep(awayMs);
		wire.mend();
		await scene.client.login();
		console.log(
			`${title}: cut with ${before} tasks, ${run.tasks.length} after ${(Date.now() - cutAt) / SECOND} s; ${(await run.now()).status}`,
		);
		return run;
	}

	test.each([
		['it asks before it sleeps, for 20 s', 'Asks', 'turn', () => asks, 'words lost', 20],
		[
			'the end of what it stores is not answered',
			'Ends',
			'turn',
			() => ends(stores),
			'answer lost',
			20,
		],
		['it is taken up', 'TakesUp', 'sleep', () => takesUp, 'words lost', 20],
		['the row of its turn is written, for 60 s', 'Begins', 'sleep', () => begins, 'words lost', 60],
		['that row is not answered', 'Begun', 'sleep', () => begins, 'answer lost', 20],
	] as const)(
		'just as %s: the run comes out by itself, each item once',
		async (_what, title, when, momentOf, fate, awayS) => {
			const run = await cutIn(title, when, momentOf(), fate, awayS * SECOND);
			const items = itemsOf(succeeded(await run.end(5 * MINUTE)));
			expect(items.map(({ state }) => state)).toEqual(Array(COUNT).fill('SUCCESS'));
			expect(run.tasks).toHaveLength(COUNT);
		},
		10 * MINUTE,
	);

	test(
		'just as n8n stores the sleep, or has taken the run up: n8n shows it as running until n8n is started again; its retry goes on, and orders nothing twice',
		async () => {
			const lost = await cutIn('Stores', 'turn', stores, 'words lost', 20 * SECOND);
			const taken = await cutIn('TakenUp', 'sleep', ends(takesUp), 'answer lost', 20 * SECOND);
			await sleep(2 * MINUTE_HERE);
			for (const run of [lost, taken]) expect((await run.now()).status).toBe('running');
			await scene.stage.killAndRestart();
			for (const run of [lost, taken]) {
				await until('n8n to see it', MINUTE, async () => (await run.now()).status === 'crashed');
			}
			for (const id of lost.taskIds) expect(scene.log).toContain(id);
			await lost.expectRetryGoesOn(COUNT);
			// The turn had not begun, so nothing is in doubt.
			await taken.expectRetryGoesOn(COUNT, 0);
			expect(taken.tasks).toHaveLength(COUNT);
		},
		15 * MINUTE,
	);
});
