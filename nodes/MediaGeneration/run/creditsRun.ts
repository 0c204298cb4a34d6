import type { IDataObject, IExecuteFunctions, INodeExecutionData } from 'n8n-workflow';

import { connect } from '../service/connect';
import { balanceAt, findBalance } from '../service/credits';
import { ItemError } from '../shared/itemError';
import { ItemParameters } from '../shared/parameters';

/**
 * One run of the credits node. The balance is read once for all items: they ask for the same account.
 *
 * @returns an item `{ balance, record }` for each input item
 * @throws NodeApiError, NodeOperationError unless the node's *On Error* lets failed items out
 * @see specification, section 4.3
 */
export async function readCredits(context: IExecuteFunctions): Promise<INodeExecutionData[]> {
	let reading: Promise<unknown> | undefined;
	const read = async () => await (await connect(context)).client.readCredits();
	const output: INodeExecutionData[] = [];
	for (const itemIndex of context.getInputData().keys()) {
		const pairedItem = { item: itemIndex };
		try {
			const body = await (reading ??= read());
			output.push({ json: checkBalance(body, new ItemParameters(context, itemIndex)), pairedItem });
		} catch (error) {
			const failed = ItemError.from(error);
			const node = context.getNode();
			if (!context.continueOnFail()) throw failed.toNodeError(node, itemIndex);
			output.push(failed.toItem(node, pairedItem));
		}
	}
	return output;
}

function checkBalance(body: unknown, parameters: ItemParameters): IDataObject {
	const field = parameters.optionText('balanceField', '');
	const balance = field === '' ? findBalance(body) : balanceAt(body, field);
	const json: IDataObject = { balance, record: body as IDataObject };
	const minimum = parameters.number(parameters.option('minimumBalance'), 'Minimum Balance', {
		fallback: 0,
		min: 0,
	});
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
			description: 'Buy credits at the service, or lower the minimum balance.',
			task: json,
		});
	}
	return json;
}
