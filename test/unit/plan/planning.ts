import type { IDataObject, IExecuteFunctions, INodeExecutionData } from 'n8n-workflow';

import { planRun } from '../../../nodes/MediaGeneration/plan/planRun';
import type { CreatePlan, TaskPlan } from '../../../nodes/MediaGeneration/plan/planTypes';
import type { PricedModel } from '../../../nodes/MediaGeneration/service/money';
import { type Service, SPECIFICATION } from '../../../nodes/MediaGeneration/service/services';
import type { ItemError } from '../../../nodes/MediaGeneration/shared/itemError';
import { CREDENTIAL, executeContext, type TestWorkflow } from '../../workflow/engine';
import { caught } from '../support';

/** What n8n says otherwise than the tests need as a rule. */
interface More extends Pick<TestWorkflow, 'triggers' | 'settings' | 'mode'> {
	/** What earlier tries know. */
	known?: Partial<Parameters<typeof planRun>[2]>;
	/** The models of the credential. */
	models?: PricedModel[];
	/** The row of its service. */
	service?: Service;
	context?: Partial<IExecuteFunctions>;
}

/** An item for each JSON. */
export const json = (...items: IDataObject[]): INodeExecutionData[] =>
	items.map((item) => ({ json: item }));

/** The parameters of an image, unless they say something else. */
export const image = (options: IDataObject = {}, more: IDataObject = {}): IDataObject => ({
	prompt: 'A lighthouse',
	...more,
	options,
});

/** The plan of a run with these parameters. */
export async function planOf(
	parameters: IDataObject,
	items = json({}),
	{ context, models = [], service = SPECIFICATION, known: more, ...workflow }: More = {},
) {
	const made = executeContext({ node: { parameters }, items, ...workflow });
	const known = { limitAt: Infinity, isOrdered: () => false, paidUsd: 0, ...more };
	return await planRun(Object.assign(made, context), { ...CREDENTIAL, models, service }, known);
}

type Given = [parameters: IDataObject, items?: INodeExecutionData[], more?: More];

/** The plan of the first item. */
export async function itemOf(...given: Given): Promise<TaskPlan> {
	const [item] = (await planOf(...given)).items;
	if (!item) throw new Error('No item');
	if (item.kind === 'refused') throw item.error;
	return item;
}

export const createOf = async (...given: Given) => (await itemOf(...given)) as CreatePlan;

export const inputOf = async (...given: Given) => (await createOf(...given)).input;

/** Why the run or its first item is refused. */
export const refusalOf = async (...given: Given) =>
	(await caught(async () => await itemOf(...given))) as ItemError;
