import type { IDataObject, INodeExecutionData } from 'n8n-workflow';

import {
	describeStop,
	type FailureRule,
	stoppingItem,
} from '../../../nodes/MediaGeneration/report/ifSomeFail';
import { ItemError } from '../../../nodes/MediaGeneration/shared/itemError';

const items = (json: IDataObject): INodeExecutionData[] => [{ json }];
const done = items({ state: 'SUCCESS' });
const failed = new ItemError('Failed');
/** As an execution that is suspended lets it out. */
const failedItem = items({ state: 'FAILURE', error: 'Failed' });

const rule = (more: Partial<FailureRule> = {}): FailureRule => ({
	ifSomeFail: 'keep',
	continues: false,
	triesLeft: false,
	...more,
});

describe('the item that stops the node', () => {
	it.each([
		['none, where none failed', [done, done], rule(), undefined],
		['none, where some succeeded', [failed, done], rule(), undefined],
		['the first failed one, where none succeeded', [failed, failed], rule(), 0],
		['the first failed one, where what leaves failed as well', [failedItem, failed], rule(), 1],
		['the first failed one, where what leaves is nothing', [[], failed], rule(), 1],
		['the first failed one, with stop', [done, failed], rule({ ifSomeFail: 'stop' }), 1],
		['the first failed one, where n8n tries again', [done, failed], rule({ triesLeft: true }), 1],
		['none, where On Error lets it out', [failed], rule({ continues: true }), undefined],
		[
			'none, where On Error lets it out in spite of stop',
			[done, failed],
			rule({ continues: true, ifSomeFail: 'stop', triesLeft: true }),
			undefined,
		],
	])('is %s', (_what, results, given, expected) => {
		expect(stoppingItem(results, given)).toBe(expected);
	});
});

describe('the description of a stop', () => {
	const error = (input?: IDataObject) =>
		new ItemError('Failed', { description: 'Change it.', task: input ? { input } : {} });

	it('says which prompt it was, what to change, and what is paid for, in this order', () => {
		expect(describeStop(error({ prompt: 'A cat' }), '1 task succeeded.')).toBe(
			'The prompt of this item: “A cat”.\n\nChange it.\n\n1 task succeeded.',
		);
	});

	it('quotes no more than the beginning of a long prompt', () => {
		const description = describeStop(error({ prompt: 'x'.repeat(5000) }), undefined) ?? '';
		expect(description).toContain(`“${'x'.repeat(200)}…”`);
		expect(description.length).toBeLessThan(300);
	});

	it.each([[undefined], [{}], [{ prompt: '' }], [{ prompt: ['A', 'B'] }]])(
		'quotes nothing of %j',
		(input) => {
			expect(describeStop(error(input), undefined)).toBe('Change it.');
		},
	);

	it('is none where there is nothing to say', () => {
		expect(describeStop(new ItemError('Failed'), undefined)).toBeUndefined();
	});
});
