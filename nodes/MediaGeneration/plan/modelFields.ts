import type { IDataObject } from 'n8n-workflow';

import { type InputField, OWN_FIELDS, panelType, readInputExample } from '../service/inputExample';
import type { PricedModel } from '../service/money';
import { ItemError } from '../shared/itemError';
import { isRecord } from '../shared/json';
import { describe, isEmpty, type ItemParameters, refused } from '../shared/parameters';
import { type CreatePlan, typed } from './planTypes';

/** A field of *Model Fields*, as n8n stores what the panel has shown. */
type ShownField = IDataObject & { id: string };

/** What *Model Fields* gives an item. */
export interface ModelFields {
	/** What the user entered, with its types. An empty field is left out. */
	values: IDataObject;
	/** The fields that the model needs, and that the user has not removed. */
	needed: string[];
}

export const NO_FIELDS: ModelFields = { values: {}, needed: [] };

/**
 * Reads *Model Fields*. What was entered for another model is not sent: n8n's panel keeps it until the panel is opened again
 * if the panel cannot evaluate an expression of the node when *Model* changes.
 *
 * @param model the chosen model
 * @param models those of the credential
 * @throws ItemError if the model does not have a field, or a value is not of its type or not in its list
 */
export function readModelFields(
	parameters: ItemParameters,
	model: string,
	models: readonly PricedModel[],
): ModelFields {
	const stored = parameters.value('modelFields');
	const { schema, value }: IDataObject = isRecord(stored) ? stored : {};
	const shown = new Map(
		(Array.isArray(schema) ? schema : []).filter(isField).map((field) => [field.id, field]),
	);
	const entered = Object.entries(Object(value) as IDataObject).filter(([, each]) => !isEmpty(each));
	const isOther = [...shown.values()].some((field) => isOfOther(field, model));
	const ofModel = new Map(fieldsOf(model, models).map((field) => [field.name, field]));
	const values = entered.map(([name, each]): [string, unknown] => {
		const before = shown.get(name);
		const field = ofModel.get(name);
		const kind = field ? panelType(field) : before?.type;
		const isKnown = ofModel.size > 0 ? field !== undefined : !isOther;
		if (!isKnown || (isOther && before?.type !== kind)) throw ofOtherModel(name, model, ofModel);
		const choices = field?.choices ?? choicesIn(before);
		if (choices.length > 0) return [name, chosen(name, each, choices)];
		return [name, typed(name, field?.type ?? kind, each, "Change the value in 'Model Fields'.")];
	});
	const isNeeded = ({ required, removed }: ShownField) => required === true && removed !== true;
	const needed = isOther ? [] : [...shown.values()].filter(isNeeded);
	return {
		values: Object.fromEntries(values) as IDataObject,
		needed: needed.map(({ id }) => id),
	};
}

const isOfOther = ({ display, displayName }: ShownField, model: string): boolean =>
	display === false && displayName !== model;

/** The fields of a model that were read in this run: an example may be long, and a run may have thousands of items. */
const readFields = new WeakMap<PricedModel, InputField[]>();

/** @returns the fields of a model by its example in the credential; none if there is no example, or it cannot be read */
function fieldsOf(id: string, models: readonly PricedModel[]): InputField[] {
	const model = models.find((each) => each.id === id);
	if (model === undefined) return [];
	const known = readFields.get(model);
	if (known) return known;
	let read: InputField[] = [];
	try {
		read = readInputExample(model.inputExample);
	} catch {
		// The panel and the test of the credential say so.
	}
	readFields.set(model, read);
	return read;
}

const isField = (value: unknown): value is ShownField =>
	isRecord(value) && typeof value.id === 'string';

const ofOtherModel = (name: string, model: string, fields: ReadonlyMap<string, unknown>) =>
	new ItemError(`'Model Fields' has '${name}', which was not entered for the model '${model}'`, {
		description: `Close the node and open it again: then 'Model Fields' has the fields of this model${fields.size > 0 ? ` (${[...fields.keys()].join(', ')})` : ''}. To send '${name}' all the same, use 'Additional Fields'.`,
	});

/** The values of a list, without the empty one. */
function choicesIn(field: ShownField | undefined): unknown[] {
	const options = Array.isArray(field?.options) ? field.options.filter(isRecord) : [];
	return options.map(({ value }) => value).filter((value) => !isEmpty(value));
}

/** An expression may give the number of a list as a text. @throws ItemError if the list does not have the value */
function chosen(name: string, value: unknown, choices: readonly unknown[]): unknown {
	const found = choices.find((choice) => String(choice) === String(value));
	if (found !== undefined) return found;
	const list = choices.map((choice) => `'${String(choice)}'`).join(', ');
	throw new ItemError(`The field '${name}' is ${describe(value)} and not in its list`, {
		description: `Choose one in 'Model Fields': ${list}. To send another value all the same, remove the field there and use 'Additional Fields'.`,
	});
}

/**
 * Looks for fields that the model's example in the credential does not have, such as misspelt names.
 *
 * @returns a warning about the first of them
 */
export function unknownField(
	creates: ReadonlyArray<Pick<CreatePlan, 'model' | 'input' | 'itemIndex'>>,
	models: readonly PricedModel[],
): string | undefined {
	for (const { model, input, itemIndex } of creates) {
		const { names, unknown } = namesOf(model, input, models);
		if (names.length === 0 || unknown === undefined) continue;
		return `The input example of '${model}' has no field '${unknown}' (item ${itemIndex + 1}). Its fields: ${names.join(', ')}.`;
	}
	return undefined;
}

/** @throws ItemError if the input has a field that the model's schema in the credential does not have */
export function checkNames(
	model: string,
	input: IDataObject,
	models: readonly PricedModel[],
): void {
	const { names, unknown, isOfAll } = namesOf(model, input, models);
	if (unknown === undefined || !isOfAll) return;
	throw new ItemError(`The model '${model}' has no field '${unknown}'`, {
		description: `Correct the name, or the schema in the credential, which has: ${names.join(', ')}.`,
	});
}

/** The names of a model's fields, and the first name of an input that is none of them. */
function namesOf(model: string, input: IDataObject, models: readonly PricedModel[]) {
	const fields = fieldsOf(model, models);
	const names = fields.map(({ name }) => name);
	const unknown = Object.keys(input).find(
		(name) => !names.includes(name) && !OWN_FIELDS.video.includes(name),
	);
	return { names, unknown, isOfAll: fields.some(({ isOfAll }) => isOfAll) };
}

/** @throws ItemError if the input lacks a field that the panel asks for */
export function checkNeeded({ needed }: ModelFields, input: IDataObject): void {
	const missing = needed.find((name) => isEmpty(input[name]));
	if (missing === undefined) return;
	const wayOut = `The model needs it, says 'Models' in the credential. Fill it in under 'Model Fields', or remove it there.`;
	throw refused(missing, 'empty', wayOut);
}
