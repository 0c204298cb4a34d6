import { enter } from './n8n/database';
import { toStored } from './stored';
import {
	field,
	imageNode,
	jsonOf,
	keepsGoing,
	many,
	MINUTE,
	prompts,
	SECOND,
	stage,
} from './support';

/** What n8n's second wake of a turn does, from the same stored state: on n8n's own engine and in virtual time. */

const on = stage();
const images = (count: number) => prompts(...many(count, 30 * SECOND));

it('a turn that is under way in another wake is left alone: nothing is ordered, and the run sleeps for longer than a turn lasts', async () => {
	const run = await on.start(imageNode({ suspendAfter: 1, maxInFlight: 2 }), images(12));
	expect(run.isAsleep).toBe(true);
	const before = on.created;
	const twin = await run.wakeTwice(2 * SECOND);
	expect(jsonOf(twin.output)).toEqual([]);
	expect((twin.run.waitTill?.getTime() ?? 0) - Date.now()).toBeGreaterThan(9 * MINUTE);
	expect(on.created).toBeGreaterThan(before);
	const { output } = await run.end();
	expect(new Set(field(output, 'taskId')).size).toBe(12);
	expect(on.created).toBe(12);
});

it('a turn whose process is dead, and of which nothing was stored, is taken over by the second wake after that: what was noted is in doubt', async () => {
	const run = await on.start(
		imageNode({ suspendAfter: 1, maxInFlight: 2 }, keepsGoing),
		images(12),
	);
	const orders = on.created;
	const { data } = run.row;
	await run.wake();
	const ordered = on.created - orders;
	expect(ordered).toBeGreaterThan(0);
	// n8n has stored nothing of that turn.
	Object.assign(run.row, { data, waitTill: Date.now() });
	const { output } = await run.end();
	const lost = field(output, 'error').filter((error) =>
		String(error).startsWith('It is not known'),
	);
	expect(lost).toHaveLength(ordered);
	expect(on.created).toBe(12);
});

it('what the second wake stores after the run has ended is out of date: nothing is ordered again, by a retry either', async () => {
	const run = await on.start(imageNode({ suspendAfter: 0 }), images(2));
	const twin = await run.wakeTwice(2 * SECOND);
	expect(field((await run.end()).output, 'taskId')).toEqual(on.taskIds);
	// n8n stores the second wake last.
	const { data, waitTill } = twin.run;
	enter(run.row, 'waiting');
	Object.assign(run.row, { data: toStored(data), waitTill: waitTill?.getTime() });
	const message = 'n8n woke this execution twice, and what n8n has kept of it is out of date';
	expect((await run.end()).error).toMatchObject({ message });
	expect((await (await run.retry()).end()).error).toMatchObject({ message });
	expect(on.created).toBe(2);
});
