import type { IDataObject, IExecuteFunctions } from 'n8n-workflow';

import { filesIn, ItemFile } from '../plan/itemFile';
import type { CreatePlan } from '../plan/taskPlan';
import { cutDataUri, cutDataUris, mapEntries } from '../shared/dataUri';

/**
 * The input as it is sent: the files are read at this moment, so that those of one item at a time are in memory. Links
 * are made at this moment, too, and end with the task's time.
 */
export async function sentInput(
	{ helpers }: IExecuteFunctions,
	{ input, itemIndex, sendsLinks, timeoutMs }: CreatePlan,
): Promise<IDataObject> {
	if (sendsLinks)
		return replaceIn(input, (file) => file.link(helpers, Math.ceil(timeoutMs / 1000)));
	const uris = new Map<ItemFile, string>();
	for (const file of filesIn(input)) {
		const buffer = await helpers.getBinaryDataBuffer(itemIndex, file.source);
		const uri = file.uriStart + buffer.toString('base64');
		file.shown = cutDataUri(uri);
		uris.set(file, uri);
	}
	return uris.size === 0 ? input : replaceIn(input, (file) => uris.get(file));
}

/** The fields `model` and `input` of an output item, long data URIs cut. Nothing is read for it. */
export function echo({ model, input }: Pick<CreatePlan, 'model' | 'input'>): IDataObject {
	return { model, input: cutDataUris(replaceIn(input, ({ shown }) => shown)) as IDataObject };
}

/** A copy of the input with its files replaced. */
function replaceIn(input: IDataObject, replace: (file: ItemFile) => unknown): IDataObject {
	const visit = (value: unknown): unknown =>
		value instanceof ItemFile ? replace(value) : mapEntries(value, visit);
	return visit(input) as IDataObject;
}
