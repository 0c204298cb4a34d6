import type { IExecuteFunctions } from 'n8n-workflow';

import { callbackAddress } from '../callback/callbackUrl';
import { refuseEngineV2 } from '../callback/triggerUrl';
import { ItemError } from '../shared/itemError';
import type { ItemParameters } from '../shared/parameters';

/** The longest reference, in UTF-16 units: it travels in an address, where a character takes up to nine. */
const MAX_REFERENCE = 500;

/**
 * What the user wants to get back with the task.
 *
 * @returns undefined where there is none
 * @throws ItemError where it is no text, or too long for an address
 */
export function readReference(parameters: ItemParameters): string | undefined {
	const value = parameters.option('reference') ?? '';
	if (typeof value === 'object') {
		throw new ItemError("The parameter 'Your Reference' is not a text", {
			description: 'Enter one value that tells the row or the order, e.g. {{ $json.id }}.',
		});
	}
	const reference = String(value);
	if (reference.length > MAX_REFERENCE) {
		throw new ItemError(`The parameter 'Your Reference' has ${reference.length} characters`, {
			description: `It travels in the callback address, so enter at most ${MAX_REFERENCE}, for example the id of a row and not the row itself.`,
		});
	}
	return reference === '' ? undefined : reference;
}

/** What the address of a trigger is made of, and who calls it. */
export interface TriggerAddresses {
	/** Signs it. */
	apiKey: string;
	/** The address of the service. */
	baseUrl: string;
	/** The URL of the one trigger of this workflow; rejects with a UserError where there is none. */
	ownTrigger: () => Promise<string>;
}

/**
 * The address of the trigger to notify: the one that is entered, or that of this workflow.
 *
 * @throws ItemError where what is entered is no text
 * @throws UserError where there is none, or n8n's engine v2 runs the workflow, whose own trigger does not work
 */
export async function readCallbackAddress(
	parameters: ItemParameters,
	context: IExecuteFunctions,
	{ apiKey, ownTrigger }: TriggerAddresses,
	reference: string | undefined,
): Promise<string> {
	if (parameters.isBlank('callbackUrl')) {
		refuseEngineV2(context);
		return callbackAddress(await ownTrigger(), apiKey, reference);
	}
	const wayOut =
		'Enter the production URL of a Media Generation Trigger, or leave it empty for the one of this workflow.';
	const entered = parameters.requiredText('callbackUrl', 'Callback URL', wayOut);
	return callbackAddress(entered, apiKey, reference);
}
