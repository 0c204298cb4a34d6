import type { IDataObject, IExecuteFunctions, INodeExecutionData } from 'n8n-workflow';

import { partOf, withInput } from '../report/includeInput';
import { connect } from '../service/connect';
import { type Clock, inTurns, systemClock } from '../shared/clock';
import { ItemError } from '../shared/itemError';
import { isTool } from '../shared/n8nInternals';
import { ItemParameters } from '../shared/parameters';
import { toNumber, isRecord, plainFields, valueAt, without } from '../shared/json';

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
	const nextTurn = inTurns(clock, context.getExecutionCancelSignal());
	let reading: Promise<unknown> | undefined;
	const read = async () => await (await connect(context)).client.readCredits();
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
			const body = await (reading ??= read());
			item = { json: checkBalance(body, parameters), pairedItem };
		} catch (error) {
			const failed = ItemError.from(error);
			if (!context.continueOnFail()) throw failed.toNodeError(node, itemIndex);
			item = failed.toItem(node, pairedItem);
		}
		if (isTool(context)) output.push({ ...item, json: toolAnswer(item.json) });
		else output.push(includesInput ? withInput(item, inputPart(input), node.onError) : item);
	}
	return output;
}

/** If the balance cannot be read now, an earlier balance in the input must not pass for it. */
const inputPart = ({ json, ...input }: INodeExecutionData) =>
	partOf({ ...input, json: without(json, 'balance') });

/** The fields that an AI agent can use. */
function toolAnswer({ record, ...answer }: IDataObject): IDataObject {
	return answer.balance === null ? { ...answer, record } : answer;
}

function checkBalance(body: unknown, parameters: ItemParameters): IDataObject {
	const field = parameters.optionText('balanceField', '');
	const balance = field === '' ? findBalance(body) : balanceAt(body, field);
	const json: IDataObject = { balance, record: body as IDataObject };
	const minimum = parameters.limit('minimumBalance');
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

/** The usual names of a balance, most telling first, as `plainFields` writes them. */
const BALANCE_NAMES = [
	/^balance$/,
	/^(credits?|available)balance$/,
	/^(available|remaining)credits$|^credits(available|remaining|left)$/,
	/^(remaining|available)$/,
	/^credits?$/,
	/^data$/,
];

/** How deep to look for a balance: `{ data: { account: { balance } } }` is three objects deep. */
const MAX_DEPTH = 3;

/**
 * Finds the credit balance in an answer whose shape the specification does not show (section 4.3).
 *
 * The shallowest object with a usual name decides; within the object the most telling name. A number and a numeric
 * string both count. A bare number is the balance itself.
 *
 * @param body the parsed JSON body
 * @returns the balance, or null if no field is known to be the balance
 */
export function findBalance(body: unknown): number | null {
	const bare = toNumber(body);
	if (bare !== null) return bare;
	let level = [body];
	for (let depth = 0; depth < MAX_DEPTH; depth++) {
		const found = level.map(balanceOf).filter((balance) => balance !== null);
		// Two objects at the same depth name a balance: nobody knows which is meant.
		if (found.length > 0) return found.length === 1 ? (found[0] ?? null) : null;
		level = level.filter(isRecord).flatMap((entry) => Object.values(entry).filter(isRecord));
	}
	return null;
}

function balanceOf(entry: unknown): number | null {
	if (!isRecord(entry)) return null;
	const fields = [...plainFields(entry)];
	const named = BALANCE_NAMES.flatMap((usual) => fields.filter(([name]) => usual.test(name)));
	return named.map(([, value]) => toNumber(value)).find((balance) => balance !== null) ?? null;
}

/**
 * Reads the balance at a path that the user entered.
 *
 * @param body the parsed JSON body
 * @param path field names joined by dots, e.g. `data.wallet.amount`; a number picks an entry of a list
 * @returns the balance, or null if there is no number at that path
 */
export function balanceAt(body: unknown, path: string): number | null {
	return toNumber(valueAt(body, path.split('.')));
}
