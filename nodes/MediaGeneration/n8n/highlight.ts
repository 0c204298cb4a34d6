import type { IExecuteFunctions } from 'n8n-workflow';

import { shortened } from '../shared/itemError';

/** n8n logs an error about a longer text, and cuts a longer name; characters. */
const LONGEST_TEXT = 255;
const LONGEST_NAME = 50;

/**
 * Puts a text into n8n's highlighted data of the execution, under the name of the node. n8n stores it with each sleep and at
 * the end, and shows it beside the execution, in editions with custom execution data; n8n's API gives it in all editions.
 * Of an execution n8n keeps ten texts.
 */
export function highlight(context: IExecuteFunctions, text: string): void {
	const name = context.getNode().name.replace(/[^\p{L}\p{N}]+/gu, '_');
	context.customData.set(name.slice(0, LONGEST_NAME), shortened(text, LONGEST_TEXT - 1));
}
