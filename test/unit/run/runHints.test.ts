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

const held = new ItemError('Held back', {
	task: { taskId: 'task-1', state, input: { prompt: 'A blue bird' } },
});
const twoOfOne = items(...[0, 1].map((resultIndex) => ({ taskId: 'task-1', resultIndex })));

const run = (...items: ItemPlan[]) => ({ items });
/** The same plan for the item at an index. */
const at = (itemIndex: number, plan: ItemPlan): ItemPlan => ({ ...plan, itemIndex });
const two = [create(0.08), at(1, create(0.08))];
const FAILED_ALONE = 'Run only the failed items again: a full run would pay for the others twice.';
const COLLECT = "To collect failed items: Settings → On Error → 'Continue (using error output)'.";
const AGAIN = `${FAILED_ALONE} ${COLLECT}`;
const LOOK =
	"Before you run a failed item again, look at its 'taskId' and 'state': a task may be paid for. Wait for Task fetches the result of a task that has not failed.";

const lost = new ItemError('It is not known whether the task was created. No answer');
const noFile = new ItemError('The result could not be downloaded', {
	task: { taskId: 'task-1', state: 'SUCCESS' },
});
const charged = new ItemError('Overloaded', {
	task: { taskId: 'task-1', state, creditsConsumed: 8 },
});

it.each<[expected: string, plans: ItemPlan[], results: ItemResult[]]>([
	['2 tasks, about 0.3 USD.', [create(0.1), create(0.2)], [done, done]],
	// One task, into however many items its results are split.
	['1 task, about 0.08 USD.', [create(0.08)], [twoOfOne]],
	// It goes on.
	['1 task, about 0.08 USD. 1 task not finished in time.', [create(0.08)], [late]],
	[
		// Of a suspended execution, whose item has its reason in `error`.
		`1 of 2 tasks, about 0.08 USD. 1 of 2 tasks failed (item 1): Held back. ${AGAIN}`,
		two,
		[items({ taskId: 'task-1', state: 'FAILURE', error: 'Held back' }), done],
	],
	[
		`1 of 2 tasks, about 0.08 USD. 1 of 2 tasks failed (item 1): Held back. ${AGAIN}`,
		two,
		[held, done],
	],
	[
		`1 of 3 tasks, about 0.08 USD. 2 of 3 tasks failed (items 1, 2): Held back. ${AGAIN}`,
		[...two, at(2, create(0.08))],
		[held, held, done],
	],
	[
		'1 of 1 item failed: No credits. 2 failed tasks created again; failed tasks are usually free.',
		[create(0.08)],
		[new ItemError('No credits', { task: { failedTaskIds: ['task-1', 'task-2', 'task-3'] } })],
	],
	[
		`1 of 2 tasks, about 0.08 USD. 1 of 2 items failed (item 1): The parameter 'Prompt' is empty. ${AGAIN}`,
		[{ kind: 'refused', itemIndex: 0, taskIndex: 0, error: refused, isDry: false }, create(0.08)],
		[refused, done],
	],
	// The operation Create has no field for the duration.
	[
		"2 tasks, about 0.08 USD. The price of 1 task is not known: enter the model with its price under 'Models' in the credential.",
		[create(0.08), create()],
		[done, done],
	],
	['2 tasks, about 0.16 USD, 8.3 credits.', two, [billed(8), billed(0.3)]],
	['2 tasks, about 0.16 USD, 8 credits for 1 task.', two, [billed(8), billed(null)]],
	// To run these items again may cost a second time.
	[
		`1 of 2 tasks, about 0.08 USD. 1 of 2 items failed (item 1): It is not known whether the task was created. No answer. ${LOOK} ${COLLECT}`,
		two,
		[lost, done],
	],
	[
		`2 tasks, about 0.16 USD. 1 of 2 tasks failed (item 1): The result could not be downloaded. ${LOOK} ${COLLECT}`,
		two,
		[noFile, done],
	],
	[
		`1 of 1 item failed: It is not known whether the task was created. No answer. ${LOOK}`,
		[create(0.08)],
		[lost],
	],
	// An earlier try has created its task.
	[
		`2 tasks, about 0.08 USD. 1 of 2 tasks failed (item 1): The parameter 'Prompt' is empty. ${LOOK} ${COLLECT}`,
		[{ kind: 'refused', itemIndex: 0, taskIndex: 0, error: refused, isDry: false }, create(0.08)],
		[ItemError.from(refused, { taskId: 'task-1', state: 'PENDING' }), done],
	],
	// Not each service lets a failed task be free.
	[
		`1 of 2 tasks, about 0.08 USD, 16 credits. 1 of 2 tasks failed (item 1): Overloaded. ${AGAIN}`,
		two,
		[charged, billed(8)],
	],
	// No price of tasks that were created before: a full run would pay for nothing.
	[`1 of 2 tasks failed (item 1): Overloaded. ${COLLECT}`, [wait, wait], [failed, done]],
])('a run is summed up: %s', (expected, plans, results) => {
	const [hint, ...others] = endHints(run(...plans), results, SERVICE);
	const isWarning = results.some((result) => result instanceof ItemError || result[0]?.json.error);
	expect(hint?.type).toBe(isWarning ? 'warning' : 'info');
	expect(hint?.message).toBe(expected);
	expect(others).toEqual([]);
});

it('nobody is told to collect failed items that leave by the error output already', () => {
	const [hint] = endHints(run(...two), [failed, done], SERVICE, { hasErrorOutput: true });
	expect(hint?.message).toMatch(new RegExp(`${FAILED_ALONE}$`));
});

it('a run by hand of which something failed says the cost, what failed, and what to do', () => {
	const made = [plan({ output, estimatedCostUsd: 0.08 }), at(1, create(0.08))];
	const good = items({ taskId: 'task-1', state: 'SUCCESS', resultUrls: ['https://a/1.png'] });
	const [hint] = endHints(run(...made), [good, failed], SERVICE, { isByHand: true });
	expect(hint?.message).toBe(
		`1 of 2 tasks, about 0.08 USD. 1 of 2 tasks failed (item 2): Overloaded. ${AGAIN}`,
	);
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
	['by itself', {}, false, 'about 0.08 USD.'],
	['by an AI agent', { isByHand: true, isTool: true }, false, 'about 0.08 USD.'],
])('one hint says what a run cost that was started %s, and how to build on it', (...given) => {
	const [, how, download, end] = given;
	const made = run(plan({ output: { ...output, download }, estimatedCostUsd: 0.08 }));
	const results = [items({ taskId: 'task-1', state: 'SUCCESS', resultUrls: ['https://a/1.png'] })];
	const [hint, ...others] = endHints(made, results, SERVICE, how);
	expect(hint?.message).toMatch(/^1 task, about 0.08 USD\./);
	expect(hint?.message.endsWith(end) || hint?.message.includes(end)).toBe(true);
	expect(hint?.message.includes("'Execute workflow' orders the task again")).toBe(
		end !== 'about 0.08 USD.',
	);
	expect(others).toEqual([]);
});

it('an AI agent gets no advice for those who build a workflow', () => {
	const [hint] = endHints(run(...two), [failed, done], SERVICE, { isTool: true });
	expect(hint?.message).toBe(
		'1 of 2 tasks, about 0.08 USD. 1 of 2 tasks failed (item 1): Overloaded.',
	);
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
	expect(hint?.message).toMatch(
		/^1 task, about 0.08 USD\. 1 task succeeded, and the service named no/,
	);
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
	['test', '-test', undefined],
])(
	'where the results appear is said of a published trigger only: a %s one, without the token',
	(_what, test, expected) => {
		const url = `https://n8n.example.com/webhook${test}/a/callback?token=secret`;
		const notified = { ...create(0.08, url), completion: 'trigger' as const };
		const [hint] = endHints(run(notified), [items(pending)], SERVICE);
		expect(hint?.message.includes('Trigger at')).toBe(expected !== undefined);
		expect(hint?.message).toContain(expected ?? '');
		expect(hint?.message ?? '').not.toContain('secret');
	},
);

it('nothing is said of checks where no task was created', () => {
	const calledBack = create(0.08, 'http://localhost:5678/webhook/a/callback');
	const hints = endHints(run(calledBack), [new ItemError('No credits')], SERVICE);
	expect(hints.map(({ message }) => message)).toEqual(['1 of 1 item failed: No credits.']);
});
