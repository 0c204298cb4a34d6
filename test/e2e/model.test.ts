import { setTimeout as sleep } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';

import { LEAN, shortMinute } from '../n8n/settings';
import { hasKill, stories, type Story } from '../simulation/stories';
import { PAUSE_MS, type StoryTrace, tell } from '../simulation/tellStory';
import { NodeSources } from '../simulation/world/nodeSources';
import { RealStory } from './realStory';
import { Stage } from './stage';

/**
 * The simulation's model of n8n against n8n: the same short stories happen in both, and both must tell the same of
 * them. All of them happen at the same time, on an n8n whose minutes are short.
 */

const sources = new NodeSources();

const MINUTE = 60_000;

/** The longest story waits for two of n8n's looks, one after the other. */
const LONGEST_MS = 3.5 * MINUTE;

const LOOK_EVERY_MS = 2_500;

/** Long enough for all that a story does before its first check, and for n8n to come up before the first check. */
const MINUTE_HERE = 20_000;

/** Longer than the test: n8n never looks for what is due. */
const NO_LOOKS = 15 * MINUTE;

/** From now on n8n's database notes each status that an execution takes. */
async function noteStatuses({ database }: Stage): Promise<void> {
	const note = 'insert into noted (execution, status) values (new.id, new.status)';
	await database.execute(
		`create table noted (number ${database.numbering}, execution integer, status text)`,
	);
	await database.at('noted_first', 'after insert on execution_entity', '1 = 1', note);
	const changes = 'old.status <> new.status';
	await database.at('noted_next', 'after update on execution_entity', changes, note);
}

async function statusLog({ database }: Stage): Promise<Map<number, string[]>> {
	const log = new Map<number, string[]>();
	for (const { execution, status } of await database.rows('select * from noted order by number')) {
		const id = Number(execution);
		log.set(id, [...(log.get(id) ?? []), String(status)]);
	}
	return log;
}

const afterKill = ({ steps = [] }: Story) =>
	steps.slice(steps.findIndex(([, what]) => what === 'kill') + 1);

const told = new Map<Story, StoryTrace>();

/** Lets stories happen on one n8n, side by side. */
async function happen(list: Story[]): Promise<void> {
	const isKilled = list.some(hasKill);
	// However long the stories take to begin: n8n checks none before it is killed.
	const stage = await Stage.open({ ...LEAN, ...shortMinute(isKilled ? NO_LOOKS : MINUTE_HERE) });
	try {
		await noteStatuses(stage);
		const real = list.map((story) => ({ story, run: new RealStory(stage, story) }));
		const ways: Array<Promise<void>> = [];
		// What becomes of a story that cannot go on says the comparison.
		const goOn = async (run: RealStory, steps: Story['steps']) =>
			await run.go(steps).catch((error: unknown) => console.error(error));
		for (const { story, run } of real) {
			await run.start();
			const way = goOn(run, story.steps);
			ways.push(way);
			// All of them are to have come so far when n8n is killed.
			if (isKilled) await way;
		}
		if (isKilled) {
			await sleep(PAUSE_MS);
			await stage.kill();
			await stage.restart(shortMinute(MINUTE_HERE));
			for (const { story, run } of real) ways.push(goOn(run, afterKill(story)));
		}
		await Promise.all(ways);
		// Where one does not become what the model has told, the comparison says what differs.
		const latest = Date.now() + LONGEST_MS;
		const different = async (among: typeof real) => {
			const log = await statusLog(stage);
			for (const { story, run } of among) told.set(story, await run.trace(log));
			return among.filter(({ story }) => !isDeepStrictEqual(told.get(story), modelled.get(story)));
		};
		let left = await different(real);
		while (Date.now() < latest && left.length > 0) {
			await sleep(LOOK_EVERY_MS);
			left = await different(left);
		}
		// Nothing more is to come after that.
		await sleep(LOOK_EVERY_MS);
		await different(real);
	} finally {
		await stage.close();
	}
}

const modelled = new Map<Story, StoryTrace>();

describe('the model and n8n tell the same', () => {
	beforeAll(async () => {
		for (const story of stories) modelled.set(story, await tell(story, sources));
		const parts = [stories.filter((story) => !hasKill(story)), stories.filter(hasKill)];
		await Promise.all(parts.map(happen));
	}, 900_000);

	for (const story of stories) {
		test(story.title, () => {
			expect(told.get(story)).toEqual(modelled.get(story));
		});
	}
});
