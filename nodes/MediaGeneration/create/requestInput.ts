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

/** The fields `model` and `input` of an output item. */
export async function echo(context: IExecuteFunctions, item: CreatePlan): Promise<IDataObject> {
	const input = await sentInput(context, item);
	const field = item.image?.field;
	const image = field === undefined ? undefined : input[field];
	if (field === undefined || typeof image !== 'string' || image.length <= MAX_ECHOED_IMAGE) {
		return { model: item.model, input };
	}
	const cut = `${image.slice(0, 64)}… (${image.length} characters)`;
	return { model: item.model, input: { ...input, [field]: cut } };
}
