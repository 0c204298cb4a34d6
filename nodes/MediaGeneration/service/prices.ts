import type { IDataObject } from 'n8n-workflow';

import { isRecord, plainName, toNumber } from '../shared/json';

/** The models that the specification shows (section 1), which are the defaults of the nodes. */
export const IMAGE_MODEL = 'imagevendor/image-model-2-text-to-image';
export const VIDEO_MODEL = 'videovendor/video-model-2-mini';

/** US dollars an image (specification, section 1). */
export const IMAGE_PRICE_USD = 0.08;
/** US dollars a second of video (specification, section 1). */
export const VIDEO_PRICE_USD_PER_SECOND = 0.1025;

/** A model, and what it costs. */
export interface PricedModel {
	/** The `model` of a create. */
	id: string;
	/** US dollars a unit; 0 if the price is not known. */
	priceUsd: number;
	unit: 'task' | 'second';
}

/** The models of the specification (section 1). */
export const SPECIFIED_MODELS: readonly PricedModel[] = [
	{ id: IMAGE_MODEL, priceUsd: IMAGE_PRICE_USD, unit: 'task' },
	{ id: VIDEO_MODEL, priceUsd: VIDEO_PRICE_USD_PER_SECOND, unit: 'second' },
];

/** @returns the models that the user has entered in the credential; rows without an id are left out */
export function readModels(models: unknown): PricedModel[] {
	const rows = Object.values(Object(models) as object).flat() as unknown[];
	return rows.filter(isRecord).flatMap(({ id, priceUsd, unit }) => {
		if (typeof id !== 'string' || id.trim() === '') return [];
		const price = Math.max(0, toNumber(priceUsd) ?? 0);
		return { id: id.trim(), priceUsd: price, unit: unit === 'second' ? 'second' : 'task' };
	});
}

/** A model as the list in the panel shows it. */
export const describeModel = ({ id, priceUsd, unit }: PricedModel): string =>
	priceUsd > 0 ? `${id} (${priceUsd} USD per ${unit})` : id;

/**
 * The cost of a task that succeeds. The prices of the account win over those of the specification.
 *
 * @param models the models of the account
 * @returns US dollars, or undefined if the price or the duration is not known
 * @see docs/service.md, section 1
 */
export function estimateCostUsd(
	model: string,
	input: IDataObject,
	models: readonly PricedModel[] = [],
): number | undefined {
	const priced = pricedModel(model, models);
	if (priced?.unit !== 'second') return priced?.priceUsd;
	const seconds = secondsIn(input);
	return seconds > 0 ? roundUsd(seconds * priced.priceUsd) : undefined;
}

const pricedModel = (model: string, models: readonly PricedModel[]) =>
	[...models, ...SPECIFIED_MODELS].find(({ id, priceUsd }) => id === model && priceUsd > 0);

/** Whether a task of the model has a known price by the second, so that it needs a duration. */
export const isPricedBySecond = (model: string, models: readonly PricedModel[] = []): boolean =>
	pricedModel(model, models)?.unit === 'second';

/** The names that models have for the length of a video, in small letters, without what joins their words. */
const DURATION_NAMES = ['duration', 'durationseconds', 'seconds', 'videolength', 'length'];

/** The length of the video that an input asks for, seconds; 0 if the input does not say. */
function secondsIn(input: IDataObject): number {
	const fields = [input, ...Object.values(input).filter(isRecord)].flatMap(Object.entries);
	const lengths = DURATION_NAMES.flatMap((duration) =>
		fields.flatMap(([name, value]) => (plainName(name) === duration ? (toNumber(value) ?? 0) : [])),
	);
	return lengths.find((seconds) => seconds > 0) ?? 0;
}

/** Removes the error of binary fractions: 0.1 + 0.2 dollars are 0.3. */
export const roundUsd = (amount: number): number => Math.round(amount * 1e6) / 1e6;
