import type { IDataObject } from 'n8n-workflow';

import { readInputExample } from '../service/inputExample';
import type { PricedModel } from '../service/money';
import { ItemError } from '../shared/itemError';
import { isRecord } from '../shared/json';
import { describe, isEmpty, type ItemParameters, refused } from '../shared/parameters';
import type { CreatePlan } from './planTypes';
import { typed } from './typed';

/** A field of *Model Fields*, as n8n stores what the panel has shown. */
type ShownField = IDataObject & { id: string };

const isField = (value: unknown): value is ShownField =>
	isRecord(value) && typeof value.id === 'string';

/** The fields that the panel shows: n8n keeps those that the user has removed, too. */
function shownFields(parameters: ItemParameters): ShownField[] {
	const stored = parameters.value('modelFields');
	const schema = isRecord(stored) && Array.isArray(stored.schema) ? stored.schema : [];
	return schema.filter(isField).filter(({ removed }) => removed !== true);
}

/**
 * The values of *Model Fields*, with their types. An empty field is left out.
 *
 * @throws ItemError if a value is not of its type or not in its list
 */
export function readModelFields(parameters: ItemParameters): IDataObject {
	const stored = parameters.value('modelFields');
	const values = isRecord(stored) && isRecord(stored.value) ? stored.value : {};
	const fields = new Map(shownFields(parameters).map((field) => [field.id, field]));
	const entered = Object.entries(values).filter(([, value]) => !isEmpty(value));
	return Object.fromEntries(
		entered.map(([name, value]): [string, unknown] => {
			const { type, options }: IDataObject = fields.get(name) ?? {};
			const choices = Array.isArray(options) ? options.filter(isRecord) : [];
			if (choices.length > 0) return [name, chosen(name, value, choices)];
			return [name, typed(name, type, value, "Change the value in 'Model Fields'.")];
		}),
	) as IDataObject;
}

/** An expression may give the number of a list as a text. @throws ItemError if the list does not have the value */
function chosen(name: string, value: unknown, choices: IDataObject[]): unknown {
	const found = choices.find((choice) => String(choice.value) === String(value));
	if (found) return found.value;
	const list = choices.map((choice) => `'${String(choice.value)}'`).join(', ');
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
	const known = new Map(models.map((model) => [model.id, namesOf(model)]));
	for (const { model, input, itemIndex } of creates) {
		const names = known.get(model) ?? [];
		const unknown = Object.keys(input).find((name) => !names.includes(name) && !OWN.includes(name));
		if (names.length === 0 || unknown === undefined) continue;
		return `The input example of '${model}' has no field '${unknown}' (item ${itemIndex + 1}). Its fields: ${names.join(', ')}.`;
	}
	return undefined;
}

/** The panel has these fields itself. */
const OWN = ['prompt', 'image_url', 'duration'];

function namesOf({ inputExample }: PricedModel): string[] {
	try {
		return readInputExample(inputExample).map(({ name }) => name);
	} catch {
		// The panel and the test of the credential say so.
		return [];
	}
}

/** @throws ItemError if the input lacks a field that the panel asks for */
export function checkRequired(parameters: ItemParameters, input: IDataObject): void {
	const missing = shownFields(parameters).find(
		({ id, required }) => required === true && isEmpty(input[id]),
	);
	if (missing === undefined) return;
	const wayOut = `The model needs it, says 'Models' in the credential. Fill it in under 'Model Fields', or remove it there.`;
	throw refused(missing.id, 'empty', wayOut);
}
