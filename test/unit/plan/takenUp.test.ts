import type { ItemPlan } from '../../../nodes/MediaGeneration/plan/planTypes';
import { type EarlierPart, withEarlier } from '../../../nodes/MediaGeneration/plan/takenUp';
import { ItemError } from '../../../nodes/MediaGeneration/shared/itemError';
import { executeContext } from '../../workflow/engine';

const BEGUN: EarlierPart = { isBegun: true };
const FREE: EarlierPart = { isBegun: false };

/** What the expressions give this time: so many creates. */
const creates = (count: number): ItemPlan[] =>
	Array.from({ length: count }, (_, part) => ({
		...({ kind: 'create', completion: 'wait', itemIndex: 0, model: 'vendor/model' } as const),
		...{ part, input: { prompt: `Line ${part}` }, output: { download: false } },
	})) as unknown as ItemPlan[];

const refused: ItemPlan = {
	...({ kind: 'refused', itemIndex: 0, isDry: false } as const),
	error: new ItemError('No prompt'),
};

/** The plans as text: what is done for which part, and with which prompt or id. */
function plansOf(planned: ItemPlan[], earlier: EarlierPart[]): string[] {
	const context = executeContext({ node: { parameters: {} }, items: [{ json: {} }] });
	return withEarlier(context, 0, planned, earlier).map((plan) => {
		if (plan.kind === 'refused') return plan.error.message;
		if (plan.kind === 'read') return `read ${plan.taskId} of part ${plan.part}`;
		const { prompt = 'nothing' } = plan.input;
		return `create ${String(prompt)} for part ${plan.part}`;
	});
}

describe('an item whose expressions give something else the next time', () => {
	it.each<[string, ItemPlan[], EarlierPart[], string[]]>([
		[
			'with fewer prompts goes on with the tasks that were begun',
			creates(1),
			[BEGUN, BEGUN, FREE],
			['create Line 0 for part 0', 'create nothing for part 1'],
		],
		[
			'with more prompts gets no more tasks than it had',
			creates(3),
			[BEGUN, FREE],
			['create Line 0 for part 0', 'create Line 1 for part 1'],
		],
		[
			'that is refused now goes on with the task that was begun',
			[refused],
			[BEGUN],
			['create nothing for part 0'],
		],
		['that is refused now, and had no task, is refused', [refused], [FREE], ['No prompt']],
		[
			'with no id at all goes on reading the ids that it had',
			[],
			[
				{ ...BEGUN, foreignId: 'task-1' },
				{ ...BEGUN, foreignId: 'task-2' },
			],
			['read task-1 of part 0', 'read task-2 of part 1'],
		],
		['that is new is planned as it is', creates(1), [], ['create Line 0 for part 0']],
	])('%s', (_what, planned, earlier, plans) => {
		expect(plansOf(planned, earlier)).toEqual(plans);
	});
});
