import type { IDataObject, IExecuteFunctions, INodeExecutionData } from 'n8n-workflow';

import { isTool, stopSignal } from '../n8n/internals';
import { partOf, withInput } from '../report/outputItems';
import { connect } from '../service/connect';
import { findBalance } from '../service/money';
import { yielding } from '../shared/clock';
import { ItemError } from '../shared/itemError';
import { numberAt, without } from '../shared/json';
import { ItemParameters } from '../shared/parameters';

/**
 * One run of the credits node. The balance is read once for all items: they ask for the same account.
 *
 * @returns an item `{ …input, balance, record }` for each input item
 * @throws Stopped where the execution was stopped
 * @throws NodeApiError, NodeOperationError unless the node's *On Error* lets failed items out
 * @see docs/service.openapi.yaml, section 4.3
 */
export async function readCredits(context: IExecuteFunctions): Promise<INodeExecutionData[]> {
	const yieldIfDue = yielding(stopSignal(context));
	let reading: Promise<unknown> | undefined;
	const node = context.getNode();
	const output: INodeExecutionData[] = [];
	for (const [itemIndex, input] of context.getInputData().entries()) {
		await yieldIfDue();
		const pairedItem = { item: itemIndex };
		let includesInput = true;
		let item: INodeExecutionData;
		try {
			const parameters = new ItemParameters(context, itemIndex);
			includesInput = parameters.option('includeInput') !== false;
			reading ??= connect(context).then(async ({ client }) => await client.readCredits());
			const body = await reading;
			item = { json: checkBalance(body, parameters), pairedItem };
		} catch (error) {
			const failed = ItemError.from(error);
			const named = context.getInputData().length > 1 ? itemIndex : undefined;
			if (!context.continueOnFail()) throw failed.toNodeError(node, named);
			item = failed.toItem(node, pairedItem);
		}
		if (isTool(context)) output.push({ ...item, json: answerForAgent(item.json) });
		else output.push(includesInput ? withInput(item, inputPart(input), node.onError) : item);
	}
	return output;
}

/** If the balance cannot be read now, an earlier balance in the input must not pass for it. */
const inputPart = ({ json, ...input }: INodeExecutionData) =>
	partOf({ ...input, json: without(json, 'balance') });

function answerForAgent({ record, ...answer }: IDataObject): IDataObject {
	return answer.balance === null ? { ...answer, record } : answer;
}

function checkBalance(body: unknown, parameters: ItemParameters): IDataObject {
	const field = parameters.optionName('balanceField', 'Balance Field', '', 'data.credits');
	const balance = field === '' ? findBalance(body) : numberAt(body, field);
	const json: IDataObject = { balance, record: body as IDataObject };
	const name = 'minimumBalance';
	const entered = parameters.has(name) ? parameters.option(name) : parameters.value(name);
	const minimum = parameters.number(name, entered);
	if (minimum === 0) return json;
	if (balance === null) {
		throw new ItemError(
			field === ''
				? 'The balance was not found in the answer of the service'
				: `The answer of the service has no number at '${field}'`,
			{
				description: `The minimum of ${minimum} credits cannot be checked. Run once without 'Minimum Balance', look at 'record', and enter the field in 'Balance Field'.`,
				task: json,
			},
		);
	}
	if (balance < minimum) {
		throw new ItemError(`The balance is ${balance} credits, below the minimum of ${minimum}`, {
			description: "Buy credits at the service, or lower 'Minimum Balance'.",
			task: json,
		});
	}
	return json;
}
