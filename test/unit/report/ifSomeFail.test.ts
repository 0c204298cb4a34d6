import type { IDataObject, INode, INodeExecutionData } from 'n8n-workflow';

import {
	describePaidTasks,
	describeStop,
	type PaidTask,
	type FailureRule,
	stoppingItem,
	triesOf,
} from '../../../nodes/MediaGeneration/report/ifSomeFail';
import { ItemError } from '../../../nodes/MediaGeneration/shared/itemError';

describe('the item that stops the node', () => {
	const items = (json: IDataObject): INodeExecutionData[] => [{ json }];
	const done = items({ state: 'SUCCESS' });
	const failed = new ItemError('Failed');
	/** As an execution that is suspended lets it out. */
	const failedItem = items({ state: 'FAILURE', error: 'Failed' });
	const stop = { ifSomeFail: 'stop' } as const;
	const inSpite = { continues: true, triesLeft: true, ...stop };

	it.each<[string, number | undefined, Array<typeof done | ItemError>, Partial<FailureRule>]>([
		['none, where none failed', undefined, [done, done], {}],
		['none, where some succeeded', undefined, [failed, done], {}],
		['the first failed one, where none succeeded', 0, [failed, failed], {}],
		['the first failed one, where what leaves failed as well', 1, [failedItem, failed], {}],
		['the first failed one, where what leaves is nothing', 1, [[], failed], {}],
		['the first failed one, with stop', 1, [done, failed], stop],
		['the first failed one, where n8n tries again', 1, [done, failed], { triesLeft: true }],
		['none, where On Error lets it out', undefined, [failed], { continues: true }],
		['none, where On Error lets it out in spite of stop', undefined, [done, failed], inSpite],
	])('is %s', (_what, expected, results, rule) => {
		const given = { ifSomeFail: 'keep', continues: false, triesLeft: false, ...rule } as const;
		expect(stoppingItem(results, given)).toBe(expected);
	});
});

describe('the description of a stop', () => {
	const described = (input?: unknown, ...tasks: PaidTask[]) => {
		const task = (input ? { input } : {}) as IDataObject;
		return describeStop(new ItemError('Failed', { description: 'Change it.', task }), { tasks });
	};

	it.each<[string, unknown, string]>([
		['the beginning of a long prompt', { prompt: 'x'.repeat(5000) }, `“${'x'.repeat(200)}…”.\n\n`],
		['nothing where there is no input', undefined, ''],
		['nothing of no prompt', {}, ''],
		['nothing of an empty prompt', { prompt: '' }, ''],
		['nothing of a list', { prompt: ['A', 'B'] }, ''],
	])('quotes %s', (_what, input, quoted) => {
		const before = quoted && `The prompt of this item: ${quoted}`;
		expect(described(input)).toBe(`${before}Change it.`);
	});

	const failed = { taskId: 'a', state: 'FAILURE', creditsConsumed: 0 };
	const error = new ItemError('Unsafe', { description: 'Change it.', task: failed });

	it('says so only where another task is paid for, or may be', () => {
		const tasks = [
			{ ...failed, credits: 8 },
			{ taskId: 'b', state: 'FAILURE' },
		];
		expect(describeStop(error, { tasks })).not.toContain('Retry execution');
		expect(describeStop(error, { tasks, unanswered: [1] })).toContain('Retry execution');
	});
});

describe('the list of created tasks', () => {
	it('names every task by what it means for the money, paid ones first', () => {
		const states = { a: 'PENDING', b: 'SUCCESS', c: 'PENDING', d: 'FAILURE', earlier: undefined };
		const tasks = Object.entries(states).map(([taskId, state]) => ({ taskId, state }));
		const wait = 'Wait for Task fetches the results without paying again';
		expect(describePaidTasks({ tasks })).toBe(
			[
				'1 task succeeded and is paid for. Get Task fetches the results without paying again: b.',
				`2 tasks are not finished, and are billed if they succeed. ${wait}: a, c.`,
				`1 task was created in an earlier try. ${wait}: earlier.`,
				'1 task failed, which is usually free: d.',
			].join(' '),
		);
	});
});

describe('the tries that n8n makes of a node', () => {
	it.each([
		[{}, 1],
		[{ retryOnFail: false, maxTries: 3 }, 1],
		[{ retryOnFail: true }, 3],
		[{ retryOnFail: true, maxTries: 2 }, 2],
		[{ retryOnFail: true, maxTries: 1 }, 2],
		[{ retryOnFail: true, maxTries: 99 }, 5],
	])('with %j', (node, expected) => {
		expect(triesOf(node as INode)).toBe(expected);
	});
});
