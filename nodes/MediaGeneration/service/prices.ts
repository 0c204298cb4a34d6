import type { IDataObject } from 'n8n-workflow';

import { numberAt } from '../shared/json';

export const IMAGE_MODEL = 'imagevendor/image-model-2-text-to-image';
export const VIDEO_MODEL = 'videovendor/video-model-2-mini';

/** US dollars an image (specification, section 1). */
export const IMAGE_PRICE_USD = 0.08;
/** US dollars a second of video (specification, section 1). */
export const VIDEO_PRICE_USD_PER_SECOND = 0.1025;

/**
 * The cost of a task that succeeds, by the published prices.
 *
 * @param durationField the field of `input` with a video's duration in seconds
 * @returns US dollars, or undefined if the model or the duration is not known
 * @see specification, section 1
 */
export function estimateCostUsd(
	model: string,
	input: IDataObject,
	durationField: string,
): number | undefined {
	if (model === IMAGE_MODEL) return IMAGE_PRICE_USD;
	if (model !== VIDEO_MODEL) return undefined;
	const seconds = numberAt(input, durationField) ?? 0;
	return seconds > 0 ? roundUsd(seconds * VIDEO_PRICE_USD_PER_SECOND) : undefined;
}

/** Removes the error of binary fractions: 0.1 + 0.2 dollars are 0.3. */
export const roundUsd = (amount: number): number => Math.round(amount * 1e6) / 1e6;
