import type { IDataObject, INodeExecutionData } from 'n8n-workflow';

import { endHints } from '../../../nodes/MediaGeneration/run/runHints';
import type { ItemPlan, ReadPlan } from '../../../nodes/MediaGeneration/plan/planTypes';
import type { ItemResult } from '../../../nodes/MediaGeneration/report/taskItems';
import { ItemError } from '../../../nodes/MediaGeneration/shared/itemError';
import { SERVICE } from '../../workflow/engine';
import { plan } from '../create/entries';

const output = { download: true, binaryField: 'data', split: false };
const create = (estimatedCostUsd?: number, webhookUrl?: string) =>
	plan({ output, estimatedCostUsd, webhookUrl });
const read = { kind: 'read', taskId: 'task-1', wait: true } as const;
const wait: ReadPlan = { ...plan({ output }), ...read };

const items = (...jsons: IDataObject[]): INodeExecutionData[] => jsons.map((json) => ({ json }));
const done = items({ taskId: 'task-1', state: 'SUCCESS' });
const billed = (creditsConsumed: number | null) =>
	items({ taskId: 'task-1', state: 'SUCCESS', creditsConsumed });
const state = 'FAILURE';
const failed = new ItemError('Overloaded', { task: { taskId: 'task-1', state } });
const pending = { taskId: 'task-1', state: 'PENDING', timedOut: true };
const late = new ItemError('Not finished', { task: pending });
const refused = new ItemError("The parameter 'Prompt' is empty");

const heldBack = new ItemError('Held back', { task: { taskId: 'task-1', state } });
const twoOfOne = items(...[0, 1].map((resultIndex) => ({ taskId: 'task-1', resultIndex })));

const run = (...items: ItemPlan[]) => ({ items });
/** The same plan for the item at an index. */
const at = (itemIndex: number, plan: ItemPlan): ItemPlan => ({ ...plan, itemIndex });
const two = [create(0.08), at(1, create(0.08))];
const HALF = '1 of 2 tasks, about 0.08 USD.';
const EMPTY = "The parameter 'Prompt' is empty.";
const FAILED_ALONE = 'Run only the failed items again: a full run would pay for the others twice.';
const COLLECT = "To collect failed items: Settings → On Error → 'Continue (using error output)'.";
const AGAIN = `${FAILED_ALONE} ${COLLECT}`;
const LOOK =
	"Before you run a failed item again, look at its 'taskId' and 'state': a task may be paid for. Wait for Task fetches the result of a task that has not failed.";

const NOT_KNOWN = 'It is not known whether the task was created. No answer';
const lost = new ItemError(NOT_KNOWN);
const noFile = new ItemError('No file', { task: { taskId: 'task-1', state: 'SUCCESS' } });
const charged = new ItemError('Overloaded', {
	task: { taskId: 'task-1', state, creditsConsumed: 8 },
});
const refusal: ItemPlan = {
	...{ kind: 'refused', itemIndex: 0, taskIndex: 0 },
	error: refused,
	isDry: false,
};
const orderedBefore = ItemError.from(refused, { taskId: 'task-1', state: 'PENDING' });
const ofThree = new ItemError('No credits', { task: { failedTaskIds: ['a', 'b', 'c'] } });
const asleep = items({ taskId: 'task-1', state, error: 'Held back' });
const MODELS = "enter the model with its price under 'Models' in the credential.";
const one = [create(0.08)];
const three = [...two, at(2, create(0.08))];

it.each<[plans: ItemPlan[], results: ItemResult[], ...expected: string[]]>([
	[[create(0.1), create(0.2)], [done, done], '2 tasks, about 0.3 USD.'],
	// One task, into however many items its results are split.
	[one, [twoOfOne], '1 task, about 0.08 USD.'],
	// It goes on.
	[one, [late], '1 task, about 0.08 USD.', '1 task not finished in time.'],
	// Of a suspended execution, whose item has its reason in `error`.
	[two, [asleep, done], HALF, '1 of 2 tasks failed (item 1): Held back.', AGAIN],
	[two, [heldBack, done], HALF, '1 of 2 tasks failed (item 1): Held back.', AGAIN],
	[
		three,
		[heldBack, heldBack, done],
		'1 of 3 tasks, about 0.08 USD.',
		'2 of 3 tasks failed (items 1, 2): Held back.',
		AGAIN,
	],
	[
		one,
		[ofThree],
		'1 of 1 item failed: No credits.',
		'2 failed tasks created again; failed tasks are usually free.',
	],
	[[refusal, create(0.08)], [refused, done], HALF, `1 of 2 items failed (item 1): ${EMPTY}`, AGAIN],
	// The operation Create has no field for the duration.
	[
		[create(0.08), create()],
		[done, done],
		'2 tasks, about 0.08 USD.',
		`The price of 1 task is not known: ${MODELS}`,
	],
	[two, [billed(8), billed(0.3)], '2 tasks, about 0.16 USD, 8.3 credits.'],
	[two, [billed(8), billed(null)], '2 tasks, about 0.16 USD, 8 credits for 1 task.'],
	// To run these items again may cost a second time.
	[two, [lost, done], HALF, `1 of 2 items failed (item 1): ${NOT_KNOWN}.`, LOOK, COLLECT],
	[
		two,
		[noFile, done],
		'2 tasks, about 0.16 USD.',
		'1 of 2 tasks failed (item 1): No file.',
		LOOK,
		COLLECT,
	],
	[one, [lost], `1 of 1 item failed: ${NOT_KNOWN}.`, LOOK],
	// An earlier try has created its task.
	[
		[refusal, create(0.08)],
		[orderedBefore, done],
		'2 tasks, about 0.08 USD.',
		`1 of 2 tasks failed (item 1): ${EMPTY}`,
		LOOK,
		COLLECT,
	],
	// Not each service lets a failed task be free.
	[
		two,
		[charged, billed(8)],
		'1 of 2 tasks, about 0.08 USD, 16 credits.',
		'1 of 2 tasks failed (item 1): Overloaded.',
		AGAIN,
	],
	// No price of tasks that were created before: a full run would pay for nothing.
	[[wait, wait], [failed, done], '1 of 2 tasks failed (item 1): Overloaded.', COLLECT],
])('a run is summed up (%#)', (plans, results, ...expected) => {
	const [hint, ...others] = endHints(run(...plans), results, SERVICE);
	const isWarning = results.some((result) => result instanceof ItemError || result[0]?.json.error);
	expect(hint?.type).toBe(isWarning ? 'warning' : 'info');
	expect(hint?.message).toBe(expected.join(' '));
	expect(others).toEqual([]);
});

it('nobody is told to collect failed items that leave by the error output already', () => {
	const [hint] = endHints(run(...two), [failed, done], SERVICE, { hasErrorOutput: true });
	expect(hint?.message).toMatch(new RegExp(`${FAILED_ALONE}$`));
});

it('a run by hand of which something failed says what to do about that, and nothing else', () => {
	const good = items({ taskId: 'task-1', state: 'SUCCESS', resultUrls: ['https://a/1.png'] });
	const [hint] = endHints(run(...two), [good, failed], SERVICE, { isByHand: true });
	expect(hint?.message).toBe(`${HALF} 1 of 2 tasks failed (item 2): Overloaded. ${AGAIN}`);
});

it('nothing is said where tasks were read and none failed', () => {
	expect(endHints(run(wait), [done], SERVICE)).toEqual([]);
});

it.each<[string, object, boolean, string]>([
	[
		'by hand, with files',
		{ isByHand: true },
		true,
		"press 'Execute step' in the next nodes, not here.",
	],
	['by hand, without files', { isByHand: true }, false, 'pin this output before you build'],
	['by itself', {}, false, ''],
	['by an AI agent', { isByHand: true, isTool: true }, false, ''],
])('one hint says what a run cost that was started %s, and how to build on it', (...given) => {
	const [, how, download, advice] = given;
	const made = run(plan({ output: { ...output, download }, estimatedCostUsd: 0.08 }));
	const results = [items({ taskId: 'task-1', state: 'SUCCESS', resultUrls: ['https://a/1.png'] })];
	const [{ message } = { message: '' }, ...others] = endHints(made, results, SERVICE, how);
	expect(message).toMatch(/^1 task, about 0.08 USD\./);
	expect(message).toContain(advice);
	expect(message.includes("'Execute workflow' orders the task again")).toBe(advice !== '');
	expect(others).toEqual([]);
});

it('an AI agent gets no advice for those who build a workflow', () => {
	const [hint] = endHints(run(...two), [failed, done], SERVICE, { isTool: true });
	expect(hint?.message).toBe(`${HALF} 1 of 2 tasks failed (item 1): Overloaded.`);
});

it('a price by the second that lacks a duration is told from a price that nobody has entered', () => {
	const plans = [plan({ output, lacksDuration: true }), create()];
	const [hint] = endHints(run(...plans), [done, done], SERVICE);
	expect(hint?.message).toContain(
		"The price of 1 task is by the second, and not known without a duration: enter 'Duration (Seconds)'",
	);
	expect(hint?.message).toContain('The price of 1 task is not known: enter the model');
});

it('a task without a usable result makes the hint a warning', () => {
	const none = items({ taskId: 'task-1', state: 'SUCCESS', resultUrls: [], record: {} });
	const [hint, ...others] = endHints(run(create(0.08)), [none], SERVICE);
	expect(hint?.type).toBe('warning');
	expect(hint?.message).toMatch(/^1 task, .* 1 task succeeded, and the service named no/);
	expect(others).toEqual([]);
});

it('nothing is said of callbacks where the service is on the same machine', () => {
	const calledBack = create(0.08, 'http://localhost:5678/webhook/a/callback');
	const [hint] = endHints(run(calledBack), [done], 'http://127.0.0.1:4010');
	expect(hint?.message).toBe('1 task, about 0.08 USD.');
});

it.each<[string, string, string]>([
	['less and less often', '', 'n8n checks after one minute, then less and less often'],
	['not at all at a test URL', '-test', 'At a test URL n8n does not check: use'],
])('where callbacks cannot arrive n8n checks %s, and says so', (_what, test, expected) => {
	const url = `http://localhost:5678/webhook${test}/a/callback?token=secret`;
	const plan = run(create(0.08, url));
	const [{ message = '' } = {}] = endHints(plan, [done], SERVICE);
	expect(message).toContain('The service at api.example.com cannot call http://localhost:5678,');
	expect(message).toContain('so the order names no callback address.');
	expect(message).toContain(expected);
	expect(message).not.toContain('secret');
});

it.each([
	['published', '', 'Trigger at https://n8n.example.com/webhook/a/callback: look in the list'],
	// It takes one callback, in the editor.
	['test', '-test', ''],
])('where the results appear is said of a published trigger only: a %s one', (...given) => {
	const [, test, expected] = given;
	const url = `https://n8n.example.com/webhook${test}/a/callback?token=secret`;
	const notified = { ...create(0.08, url), completion: 'trigger' as const };
	const [{ message } = { message: '' }] = endHints(run(notified), [items(pending)], SERVICE);
	expect(message.includes('Trigger at')).toBe(expected !== '');
	expect(message).toContain(expected);
	expect(message).not.toContain('secret');
});

it('nothing is said of checks where no task was created', () => {
	const calledBack = create(0.08, 'http://localhost:5678/webhook/a/callback');
	const hints = endHints(run(calledBack), [new ItemError('No credits')], SERVICE);
	expect(hints.map(({ message }) => message)).toEqual(['1 of 1 item failed: No credits.']);
});
