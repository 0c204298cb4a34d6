import type { IDataObject, IExecuteFunctions } from 'n8n-workflow';

import type { CreatePlan } from '../plan/itemPlan';

/** Longer data URIs are cut in the output: a batch of pictures would swell the execution's data by all of them. */
const MAX_ECHOED_IMAGE = 4096;

/** The input as it is sent: a reference image is read at this moment, so that one at a time is in memory. */
export async function sentInput(
	{ helpers }: IExecuteFunctions,
	{ input, image, itemIndex }: CreatePlan,
): Promise<IDataObject> {
	if (!image || image.field in input) return input;
	const { mimeType } = helpers.assertBinaryData(itemIndex, image.binaryPropertyName);
	const buffer = await helpers.getBinaryDataBuffer(itemIndex, image.binaryPropertyName);
	return { ...input, [image.field]: `data:${mimeType};base64,${buffer.toString('base64')}` };
}

/**
 * The fields `model` and `input` of an output item.
 *
 * @param input what was sent, so that nothing is read a second time for a task that is paid for
 */
export function echo({ model, image }: CreatePlan, input: IDataObject): IDataObject {
	const field = image?.field;
	const picture = field === undefined ? undefined : input[field];
	if (field === undefined || typeof picture !== 'string' || picture.length <= MAX_ECHOED_IMAGE) {
		return { model, input };
	}
	// By way of a buffer: a part of a text keeps the whole of it in memory.
	const start = Buffer.from(picture.slice(0, 64)).toString();
	return { model, input: { ...input, [field]: `${start}… (${picture.length} characters)` } };
}
