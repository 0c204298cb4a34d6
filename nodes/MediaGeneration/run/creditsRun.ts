import type { IDataObject, IExecuteFunctions, INodeExecutionData } from 'n8n-workflow';

import { isTool, stopSignal } from '../n8n/internals';
import { ReadWindow } from '../read/readWindow';
import { partOf, withInput } from '../report/outputItems';
import { connect } from '../service/connect';
import { findBalance } from '../service/money';
import { ServiceError } from '../service/serviceError';
import { clock, inTurns, sleepUntil } from '../shared/clock';
import { ItemError } from '../shared/itemError';
import { numberAt, without } from '../shared/json';
import { ItemParameters } from '../shared/parameters';
import { settled } from '../shared/promises';

/**
 * One run of the credits node. The balance is read once for all items: they ask for the same account.
 *
 * @returns an item `{ …input, balance, record }` for each input item
 * @throws Stopped where the execution was stopped
 * @throws NodeApiError, NodeOperationError unless the node's *On Error* lets failed items out
 * @see docs/service.md, section 4.3
 */
export async function readCredits(context: IExecuteFunctions): Promise<INodeExecutionData[]> {
	const nextTurn = inTurns(stopSignal(context));
	let reading: Promise<unknown> | undefined;
	const node = context.getNode();
	const output: INodeExecutionData[] = [];
	for (const [itemIndex, input] of context.getInputData().entries()) {
		await nextTurn();
		const pairedItem = { item: itemIndex };
		let includesInput = true;
		let item: INodeExecutionData;
		try {
			const parameters = new ItemParameters(context, itemIndex);
			includesInput = parameters.option('includeInput') !== false;
			const body = await (reading ??= readBalance(context));
			item = { json: checkBalance(body, parameters), pairedItem };
		} catch (error) {
			const failed = ItemError.from(error);
			const named = context.getInputData().length > 1 ? itemIndex : undefined;
			if (!context.continueOnFail()) throw failed.toNodeError(node, named);
			item = failed.toItem(node, pairedItem);
		}
		if (isTool(context)) output.push({ ...item, json: toolAnswer(item.json) });
		else output.push(includesInput ? withInput(item, inputPart(input), node.onError) : item);
	}
	return output;
}

/** How long the balance is tried, milliseconds; shorter if nothing shows that there is a service at the address. */
const PATIENCE_MS = 30_000;
const NO_SERVICE_PATIENCE_MS = 5_000;

/** How long the last read may take. */
const LAST_READ_MS = 5_000;

const PAUSE_MS = 2_000;

/** Reads the balance, and again for a while if the answer says that this may help, as with the reads of a task. */
async function readBalance(context: IExecuteFunctions): Promise<unknown> {
	const { client } = await connect(context);
	const signal = stopSignal(context);
	const window = new ReadWindow(signal);
	const begunAt = clock.now();
	const giveUpAt = begunAt + PATIENCE_MS;
	const read = async () => await client.readCredits(giveUpAt + LAST_READ_MS - clock.now());
	let refusal: unknown = new Error('The balance was not read');
	for (;;) {
		const answer = await settled(window.read(read, giveUpAt));
		if (!('error' in answer)) {
			if (answer.value !== undefined) return answer.value;
			throw refusal;
		}
		refusal = answer.error;
		const next = clock.now() + PAUSE_MS;
		if (!(refusal instanceof ServiceError) || !refusal.meaning.again) throw refusal;
		const isOfAddress = refusal.meaning.scope === 'address';
		if (next > (isOfAddress ? begunAt + NO_SERVICE_PATIENCE_MS : giveUpAt)) throw refusal;
		await sleepUntil(next, signal);
	}
}

/** If the balance cannot be read now, an earlier balance in the input must not pass for it. */
const inputPart = ({ json, ...input }: INodeExecutionData) =>
	partOf({ ...input, json: without(json, 'balance') });

/** The fields that an AI agent can use. */
function toolAnswer({ record, ...answer }: IDataObject): IDataObject {
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
