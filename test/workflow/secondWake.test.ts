import { forgetStates } from '../../nodes/MediaGeneration/n8n/newestState';
import { enter } from './n8n/database';
import { WorkflowN8n } from './n8n/workflowN8n';
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
import { pass, passUntil } from './time';

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

const inDoubt = (items: Parameters<typeof field>[0]) =>
	field(items, 'error').filter((error) => String(error).startsWith('It is not known'));

it('a turn whose process is dead, and of which nothing was stored, is taken over by the second wake after that: its window is in doubt', async () => {
	const run = await on.start(
		imageNode({ suspendAfter: 1, maxInFlight: 2 }, keepsGoing),
		images(30),
	);
	const { data } = run.row;
	await run.wake();
	const orders = on.created;
	// n8n has stored nothing of that turn.
	Object.assign(run.row, { data, waitTill: Date.now() });
	forgetStates();
	const { output } = await run.end();
	// The first turn has ordered four, so the second turn may order ten.
	expect(inDoubt(output)).toHaveLength(10);
	expect(on.created).toBe(orders + 30 - 14);
});

describe('what the second wake stores after the run has ended', () => {
	async function storedLast() {
		const options = { suspendAfter: 0, maxInFlight: 2 };
		const run = await on.start(imageNode(options), images(12));
		const twin = await run.wakeTwice(2 * SECOND);
		expect(field((await run.end()).output, 'taskId')).toEqual(on.taskIds);
		const { data, waitTill } = twin.run;
		enter(run.row, 'waiting');
		Object.assign(run.row, { data: toStored(data), waitTill: waitTill?.getTime() });
		return run;
	}

	it('is older than what the process remembers: the items leave once more, and nothing is ordered', async () => {
		const run = await storedLast();
		expect(field((await run.end()).output, 'taskId')).toEqual(on.taskIds);
		expect(on.created).toBe(12);
	});

	it('is all that another process knows: nothing is ordered again, by a retry either', async () => {
		const run = await storedLast();
		forgetStates();
		const message = expect.stringContaining('It is not known');
		expect((await run.end()).error).toMatchObject({ message });
		expect((await (await run.retry()).end()).error).toMatchObject({ message });
		expect(on.created).toBe(12);
	});
});

it.each([
	['was killed', true],
	['is at work', false],
])(
	'a first turn that is run again on another worker, while the first one %s, orders nothing',
	async (_how, isKilled) => {
		const n8n = new WorkflowN8n(on.workflow(imageNode(), images(5)), true);
		const run = n8n.begin();
		await passUntil(() => on.created === 5);
		if (isKilled) run.row.process?.die();
		n8n.executions.runAgain(run.row);
		const { error } = await run.end();
		expect(error?.message).toContain('n8n has not kept what it created');
		await pass(5 * MINUTE);
		expect(on.created).toBe(5);
	},
);
