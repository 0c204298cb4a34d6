import type { IDataObject, IExecuteFunctions, INodeExecutionData } from 'n8n-workflow';

import { connect } from '../service/connect';
import { balanceAt, findBalance } from '../service/credits';
import { type Clock, systemClock } from '../shared/clock';
import { ItemError } from '../shared/itemError';
import { recordLast } from '../shared/outputJson';
import { isTool } from '../shared/tool';
import { ItemParameters } from '../shared/parameters';
import { Turns } from '../shared/turns';

/**
 * One run of the credits node. The balance is read once for all items: they ask for the same account.
 *
 * @returns an item `{ …input, balance, record }` for each input item
 * @throws Stopped where the execution was stopped
 * @throws NodeApiError, NodeOperationError unless the node's *On Error* lets failed items out
 * @see specification, section 4.3
 */
export async function readCredits(
	context: IExecuteFunctions,
	clock: Clock = systemClock,
): Promise<INodeExecutionData[]> {
	const turns = new Turns(clock, context.getExecutionCancelSignal());
	let reading: Promise<unknown> | undefined;
	const read = async () => await (await connect(context)).client.readCredits();
	const output: INodeExecutionData[] = [];
	for (const [itemIndex, input] of context.getInputData().entries()) {
		await turns.next();
		const pairedItem = { item: itemIndex };
		let includesInput = true;
		let item: INodeExecutionData;
		try {
			const parameters = new ItemParameters(context, itemIndex);
			includesInput = parameters.option('includeInput') !== false;
			const body = await (reading ??= read());
			item = { json: checkBalance(body, parameters), pairedItem };
		} catch (error) {
			const failed = ItemError.from(error);
			const node = context.getNode();
			if (!context.continueOnFail()) throw failed.toNodeError(node, itemIndex);
			item = failed.toItem(node, pairedItem);
			// n8n adds the fields of the input by itself there, to items that have nothing but the reason.
			if (node.onError === 'continueErrorOutput') {
				output.push(item);
				continue;
			}
		}
		if (isTool(context)) output.push({ ...item, json: toolAnswer(item.json) });
		else output.push(includesInput ? withInput(item, input) : item);
	}
	return output;
}

/** What an AI agent can use. */
function toolAnswer({ record, ...answer }: IDataObject): IDataObject {
	return answer.balance === null ? { ...answer, record } : answer;
}

/** The item with the fields and files of its input, so that the node can stand before a batch. */
function withInput(item: INodeExecutionData, input: INodeExecutionData): INodeExecutionData {
	return {
		...item,
		json: recordLast({ ...input.json, ...item.json }),
		...(input.binary && { binary: input.binary }),
	};
}

function checkBalance(body: unknown, parameters: ItemParameters): IDataObject {
	const field = parameters.optionText('balanceField', '');
	const balance = field === '' ? findBalance(body) : balanceAt(body, field);
	const json: IDataObject = { balance, record: body as IDataObject };
	const minimum = parameters.limit('minimumBalance', 'Minimum Balance');
	if (minimum === 0) return json;
	if (balance === null) {
		throw new ItemError(
			field === ''
				? 'The balance was not found in the answer of the service'
				: `The answer of the service has no number at '${field}'`,
			{
				description: `The minimum of ${minimum} credits cannot be checked. Look at 'record' in the output without a minimum, and enter the field in 'Balance Field'.`,
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
