import type { IExecuteFunctions } from 'n8n-workflow';

import { stopSignal } from '../n8n/internals';
import { mayDifferByItem } from '../n8n/itemCredential';
import { type Credential, CREDENTIAL_TYPE } from '../service/connect';
import { yielding } from '../shared/clock';
import { ItemError } from '../shared/itemError';
import { isSame } from '../shared/json';

/**
 * Checks that all items have the same account: a run orders with one key, and counts the limits of one account.
 *
 * @throws ItemError if an expression in the credential gives an item another key or address than the first item
 * @throws Stopped if the execution was stopped
 */
export async function checkOneAccount(context: IExecuteFunctions): Promise<void> {
	const count = context.getInputData().length;
	if (count < 2 || !(await mayDifferByItem(context, CREDENTIAL_TYPE))) return;
	const yieldIfDue = yielding(stopSignal(context));
	const accountOf = async (itemIndex: number) =>
		await context.getCredentials<Credential>(CREDENTIAL_TYPE, itemIndex);
	const first = await accountOf(0);
	for (let itemIndex = 1; itemIndex < count; itemIndex++) {
		await yieldIfDue();
		if (isSame(await accountOf(itemIndex), first)) continue;
		throw new ItemError(
			`The credential gives item ${itemIndex + 1} another account than item 1, and a run has one account`,
			{
				description:
					"Put n8n's node Loop Over Items with a Batch Size of 1 before this node, and connect this node back to the loop: then each run has one item, with its own account. Nothing was sent.",
			},
		);
	}
}
