import type { IDataObject } from 'n8n-workflow';

import { isRecord, isScalar, plainFields, plainName, toNumber } from '../shared/json';

/** The models that the specification shows (section 1), which are the defaults of the nodes. */
export const IMAGE_MODEL = 'imagevendor/image-model-2-text-to-image';
export const VIDEO_MODEL = 'videovendor/video-model-2-mini';

/** A model, and what it costs. */
export interface PricedModel {
	/** The `model` of a create. */
	id: string;
	/** US dollars a unit; 0 if the price is not known. */
	priceUsd: number;
	unit: 'task' | 'second';
	/** The model's input as its documentation shows it, in JSON. */
	inputExample?: string;
}

/** The models of the specification with their prices (section 1). */
export const SPECIFIED_MODELS: readonly PricedModel[] = [
	{ id: IMAGE_MODEL, priceUsd: 0.08, unit: 'task' },
	{ id: VIDEO_MODEL, priceUsd: 0.1025, unit: 'second' },
];

/** @returns the models that the user has entered in the credential; rows without an id are left out */
export function readModels(models: unknown): PricedModel[] {
	const rows = Object.values(Object(models) as object).flat() as unknown[];
	return rows.filter(isRecord).flatMap(({ id, priceUsd, unit, inputExample }) => {
		if (typeof id !== 'string' || id.trim() === '') return [];
		return {
			id: id.trim(),
			priceUsd: Math.max(0, toNumber(priceUsd) ?? 0),
			unit: unit === 'second' ? 'second' : 'task',
			...(typeof inputExample === 'string' && inputExample.trim() && { inputExample }),
		};
	});
}

/** What makes the results of an operation. */
export type Kind = 'image' | 'video';

/**
 * The model where the user has chosen none. What is paid by the second is a video.
 *
 * @param models the models of the account, or those of the specification
 * @returns the identifier of the first model of this kind, if there is one
 */
export const firstModel = (kind: Kind, models: readonly PricedModel[]): string | undefined =>
	models.find(({ unit }) => (unit === 'second') === (kind === 'video'))?.id;

/** A model as the list in the panel shows it. */
export const describeModel = ({ id, priceUsd, unit }: PricedModel): string =>
	priceUsd > 0 ? `${id} (${priceUsd} USD per ${unit})` : id;

/**
 * The cost of a task that succeeds. If the account has no models, the prices of the specification count.
 *
 * @param models the models of the account
 * @returns US dollars, or undefined if the price or the duration is not known
 * @see docs/service.openapi.yaml, section 1
 */
export function estimateCostUsd(
	model: string,
	input: IDataObject,
	models: readonly PricedModel[],
): number | undefined {
	const priced = pricedModel(model, models);
	if (priced === undefined) return undefined;
	const units = priced.unit === 'second' ? secondsIn(input) : 1;
	const usd = roundUsd(units * countOfResults(input) * priced.priceUsd);
	return usd > 0 ? usd : undefined;
}

/** Who has entered models does not pay the prices of the specification. */
const pricedModel = (model: string, models: readonly PricedModel[]) =>
	(models.length > 0 ? models : SPECIFIED_MODELS).find(
		({ id, priceUsd }) => id === model && priceUsd > 0,
	);

/** @returns what to do about a model that the account does not have, as far as the user has entered the account's models */
export function adviseModel(model: string, models: readonly PricedModel[]): string | undefined {
	if (models.length === 0 || models.some(({ id }) => id === model)) return undefined;
	return `The model '${model}' is not in the credential, under 'Models': choose a model from the list in 'Model'.`;
}

/** Whether a model is a placeholder of the specification, which the account does not have. */
export const isPlaceholder = (model: string, models: readonly PricedModel[]): boolean =>
	models.length > 0 &&
	SPECIFIED_MODELS.some(({ id }) => id === model) &&
	!models.some(({ id }) => id === model);

/** Whether a task of the model has a known price by the second, so that it needs a duration. */
export const isPricedBySecond = (model: string, models: readonly PricedModel[]): boolean =>
	pricedModel(model, models)?.unit === 'second';

/** The names that models have for the number of results, in small letters, without what joins their words. */
const COUNT_NAMES =
	/^(?:n|count|quantity|batchsize|(?:num|number|max|n)(?:of)?(?:images?|pictures?|videos?|outputs?|results?|samples?|generations?|variations?)(?:perprompt)?|(?:images?|videos?|outputs?|results?|samples?|variations?)(?:count|num|number)|samples|variations)$/;

/** Objects in an input are not looked through any deeper. */
const COUNT_DEPTH = 3;

/**
 * How many results an input asks for; each is billed. A budget must hold, so the numbers of several fields are multiplied,
 * and a text that is no number makes the price unknown.
 *
 * @returns NaN if nobody knows
 */
const countOfResults = (input: IDataObject, depth = 1): number =>
	Object.entries(input).reduce((product, [name, value]) => {
		if (isRecord(value))
			return depth < COUNT_DEPTH ? product * countOfResults(value, depth + 1) : product;
		const isCount = COUNT_NAMES.test(plainName(name)) && isScalar(value) && value !== '';
		return isCount ? product * Math.max(1, toNumber(value) ?? NaN) : product;
	}, 1);

/** The names that models have for the length of a video, in small letters, without what joins their words. */
const DURATION_NAMES = ['duration', 'durationseconds', 'seconds', 'videolength', 'length'];

/**
 * The length of the video that an input asks for, seconds; 0 if the input does not say. If several fields say it, nobody
 * knows which one the model takes, and a budget must hold with the longest.
 */
const secondsIn = (input: IDataObject): number =>
	longestIn(Object.entries(input)) ||
	longestIn(Object.values(input).filter(isRecord).flatMap(Object.entries));

const longestIn = (fields: Array<[name: string, value: unknown]>): number =>
	Math.max(
		0,
		...fields.map(([name, value]) =>
			DURATION_NAMES.includes(plainName(name)) ? (toNumber(value) ?? 0) : 0,
		),
	);

/** Removes the error of binary fractions: 0.1 + 0.2 dollars are 0.3. */
export const roundUsd = (amount: number): number => Math.round(amount * 1e6) / 1e6;

/** The usual names of a balance, most telling first, as `plainFields` writes them. */
const BALANCE_NAMES = [
	/^balance$/,
	/^(credits?|available|remaining|current|account)balance$/,
	/^(available|remaining)credits$|^credits(available|remaining|left)$/,
	/^(remaining|available)$/,
	/^credits?$/,
	/^data$/,
];

/** How deep to look for a balance: `{ data: { account: { balance } } }` is three objects deep. */
const MAX_BALANCE_DEPTH = 3;

/**
 * Finds the credit balance in an answer whose shape the specification does not show (section 4.3).
 *
 * The shallowest object with a usual name decides; within the object the most telling name. A numeric string counts, too.
 *
 * @param body the parsed JSON body, or a bare number
 * @returns the balance, or null if no field is known to be the balance
 */
export function findBalance(body: unknown): number | null {
	const bare = toNumber(body);
	if (bare !== null) return bare;
	let level = [body];
	for (let depth = 0; depth < MAX_BALANCE_DEPTH; depth++) {
		const [found, ...others] = level.map(balanceOf).filter((balance) => balance !== null);
		// Two objects at the same depth name a balance: nobody knows which is meant.
		if (found !== undefined) return others.length === 0 ? found : null;
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
