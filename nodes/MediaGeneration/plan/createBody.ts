import type { IDataObject } from 'n8n-workflow';

import type { Connection } from '../service/connect';
import { firstModel, SPECIFIED_MODELS } from '../service/money';
import { SPECIFICATION } from '../service/services';
import { ItemError } from '../shared/itemError';
import { hasText, isName, isRecord, isSame, namesIn } from '../shared/json';
import { isCutDataUri, isTelling } from '../shared/media';
import {
	choice,
	describe,
	isEmpty,
	type ItemParameters,
	refused,
	textsIn,
} from '../shared/parameters';
import { findFiles, InputFile } from './inputFile';
import { checkNames, checkNeeded, NO_FIELDS, readModelFields } from './modelFields';
import { type CreatePlan, typed } from './planTypes';

type Account = Pick<Connection, 'models' | 'service'>;

/**
 * What each create of an item sends: the model, and the input. The fields of the node win over *Model Fields*, and the
 * options win over both. With *One Image per Line* an item has many creates.
 *
 * @param account its models, and the row of its service
 * @throws ItemError if there is nothing to send, or a value cannot be meant
 */
export function readCreateBodies(
	parameters: ItemParameters,
	account: Account,
): Array<Pick<CreatePlan, 'model' | 'input'>> {
	const model = readModel(parameters, account);
	const isRaw = parameters.value('resource') === 'task';
	const inputs = isRaw ? [readRawInput(parameters)] : readMediaInputs(parameters);
	const ofModel = isRaw ? NO_FIELDS : readModelFields(parameters, model, account.models);
	const json = parameters.option('additionalInput');
	const additional = parameters.jsonObject(json, 'More Input (JSON)');
	return inputs.map((fields) => {
		const own = { ...ofModel.values, ...fields };
		const all = withAdditionalFields(withFiles(own, parameters), parameters);
		const input = { ...all, ...additional };
		checkInput(input, parameters);
		checkNeeded(ofModel, input);
		checkNames(model, input, account.models);
		return { model, input };
	});
}

/** The model of the item: the chosen model, or the first one of the credential. */
function readModel(parameters: ItemParameters, { models, service }: Account): string {
	const wayOut = 'Choose a model from the list, or enter its identifier, e.g. provider/model-name.';
	const kind = parameters.value('resource');
	const value = parameters.value('model');
	const isOpen = kind === 'image' || kind === 'video';
	if (!isOpen || !parameters.isLeftOut('model', 'Model', value, wayOut)) {
		return parameters.requiredText('model', 'Model', wayOut).trim();
	}
	const isOfNone = models.length === 0 && isSame(service, SPECIFICATION);
	const first = firstModel(kind, isOfNone ? SPECIFIED_MODELS : models);
	if (first !== undefined) return first;
	const paid = kind === 'video' ? 'by the second, as a video is' : 'by the task, as an image is';
	throw refused('Model', `empty, and no model of the credential is paid ${paid}`, wayOut);
}

/** The input of a task as JSON. The unchanged template counts as empty. */
function readRawInput(parameters: ItemParameters): IDataObject {
	const value = parameters.value('input');
	if (isEmpty(value) && parameters.expression('input') !== '') {
		const wayOut =
			'Check that the incoming item has the field. If the options have all fields, enter {}.';
		throw refused('Input', 'empty', wayOut);
	}
	const input = parameters.jsonObject(value, 'Input');
	return input.prompt === '' && Object.keys(input).length === 1 ? {} : input;
}

const OBJECT_IN_TEXT = '[object Object]';

function checkInput(input: IDataObject, { context, itemIndex }: ItemParameters): void {
	const isOfObject = (text: string) => text.includes(OBJECT_IN_TEXT);
	const field = Object.keys(input).find((name) => hasText(input[name], isOfObject));
	// Somebody may have written the text by hand, in the node or in the row.
	const written = [context.getNode().parameters, context.getInputData()[itemIndex]?.json];
	if (field !== undefined && !hasText(written, isOfObject)) {
		throw new ItemError(`The field '${field}' has an object in its text: '${OBJECT_IN_TEXT}'`, {
			description:
				'An expression gives an object or a list. Take one field of it, e.g. {{ $json.product.name }}.',
		});
	}
	if (hasText(input, isCutDataUri)) {
		throw new ItemError('The input has a file that is cut short, as outputs show files', {
			description:
				"Use the option 'Files' with the binary field of the item, and not the 'input' that an earlier node has put out.",
		});
	}
	if (Object.keys(input).length > 0) return;
	const wayOut =
		'Write the input of the model as a JSON object, e.g. { "prompt": "a lighthouse at dusk" }, or add the option \'Additional Fields\'.';
	throw refused('Input', 'empty', wayOut);
}

function readMediaInputs(parameters: ItemParameters): IDataObject[] {
	const prompts = readPrompts(parameters);
	const isVideo = parameters.value('resource') === 'video';
	const further = isVideo ? readVideoInput(parameters) : {};
	return prompts.map((prompt) => ({ prompt, ...further }));
}

function readPrompts(parameters: ItemParameters): string[] {
	const wayOut =
		'Describe what is to be generated. If the prompt is an expression, check that the incoming item has that field.';
	const prompt = parameters.requiredText('prompt', 'Prompt', wayOut);
	const label =
		parameters.value('resource') === 'video' ? 'One Video per Line' : 'One Image per Line';
	const isPerLine = parameters.flag('promptPerLine', label, parameters.value('promptPerLine'));
	return isPerLine ? textsIn(prompt, /[\r\n\u2028\u2029]/) : [prompt];
}

function readVideoInput(parameters: ItemParameters): IDataObject {
	const seconds = parameters.number('durationSeconds', parameters.value('durationSeconds'));
	const input: IDataObject = seconds > 0 ? { duration: seconds } : {};
	const sources = { none: 'None', url: 'From URL', binary: 'From Binary Data' };
	const source = choice('Reference Image', parameters.value('imageSource'), sources);
	if (source === 'none') return input;
	const images = source === 'binary' ? findImages(parameters) : [readImageUrl(parameters)];
	return withValuesIn(input, 'image_url', images);
}

function findImages(parameters: ItemParameters): InputFile[] {
	const label = 'Input Data Field Name';
	const files = findFiles(parameters, parameters.value('binaryPropertyName'), label);
	// The bytes of a file whose label tells nothing are looked at when the file is sent.
	const other = files.find(({ mimeType }) => isTelling(mimeType) && !/^image\//.test(mimeType));
	if (other === undefined) return files;
	throw new ItemError(`The field '${other.name}' holds '${other.mimeType}' and not a picture`, {
		description: `Choose a field with a picture in '${label}'.`,
	});
}

function readImageUrl(parameters: ItemParameters): string {
	const wayOut =
		"Enter an address that the service can reach, e.g. https://example.com/image.png, or {{ $json.resultUrls[0] }} for the result of a Media Generation node. For a file of the item, choose 'From Binary Data' in 'Reference Image'.";
	const text = parameters.requiredText('imageUrl', 'Image URL', wayOut).trim();
	if (/^data:image\/[^,]*,./i.test(text)) return text;
	if (!URL.canParse(text)) {
		throw refused('Image URL', `not a valid address: ${describe(text)}`, wayOut);
	}
	const { protocol } = new URL(text);
	if (protocol !== 'https:' && protocol !== 'http:') {
		throw new ItemError(`The parameter 'Image URL' starts with '${protocol}'`, {
			description: wayOut,
		});
	}
	return text;
}

/** Puts files, or their addresses, into a field of the input. With `[]` at its end the value is always a list. */
function withValuesIn(
	input: IDataObject,
	field: string,
	values: Array<InputFile | string>,
): IDataObject {
	const isList = field.endsWith('[]');
	const name = isList ? field.slice(0, -2) : field;
	return withField(input, name, isList || values.length > 1 ? values : values[0]);
}

function withFiles(input: IDataObject, parameters: ItemParameters): IDataObject {
	const byField = new Map<string, InputFile[]>();
	for (const entry of rowsOf(parameters, 'files', 'file', 'Files')) {
		const field = fieldNameOf(entry.inputField, 'Name in the Model', 'Files');
		const files = findFiles(parameters, entry.binaryPropertyName, 'Input Data Field Name');
		// `images` and `images[]` are one list.
		const isSame = (other: string) => namesIn(other).join('.') === namesIn(field).join('.');
		const known = [...byField.keys()].find(isSame) ?? field;
		byField.set(known, [...(byField.get(known) ?? []), ...files]);
	}
	return [...byField].reduce((all, [field, files]) => withValuesIn(all, field, files), input);
}

const CHOOSE_TYPE =
	"Change its value, or choose the type of the value beside its name in 'Additional Fields'.";

function withAdditionalFields(input: IDataObject, parameters: ItemParameters): IDataObject {
	return rowsOf(parameters, 'additionalFields', 'assignments', 'Additional Fields').reduce(
		(all, entry) => {
			const name = fieldNameOf(entry.name, 'Name', 'Additional Fields');
			// A value that the item does not have is left out.
			if (entry.value === undefined) return all;
			if (entry.type === 'binary') {
				return withValuesIn(all, name, findFiles(parameters, entry.value, name));
			}
			// Checked as JSON, which would write null for NaN.
			const { value } = parameters.jsonObject(
				{ value: typed(name, entry.type, entry.value, CHOOSE_TYPE) },
				name,
			);
			return withField(all, name, value);
		},
		input,
	);
}

/** The rows of an option. @throws ItemError if it holds something else than rows, which would not be sent */
function rowsOf(
	parameters: ItemParameters,
	option: string,
	list: string,
	label: string,
): IDataObject[] {
	const value = parameters.option(option);
	if (isEmpty(value) || isSame(value, {})) return [];
	const rows = isRecord(value) ? value[list] : value;
	if (Array.isArray(rows) && rows.every(isRecord)) return rows;
	throw refused(label, 'not a list of rows', 'Remove this option, and add it again in the panel.');
}

function fieldNameOf(value: unknown, label: string, option: string): string {
	if (isName(value)) return value.trim();
	throw new ItemError(`One of the '${option}' has no name`, {
		description: `Fill in '${label}' with the field of the model's input, e.g. seed, or delete the row.`,
	});
}

/** An index in a name. Larger numbers are names: nobody means a list with so many empty entries. */
const INDEX = /^\d{1,2}$/;

/**
 * A copy of an object with a value put in as n8n's own Edit Fields does it: a dot in the name leads into an object, and
 * [0] into a list.
 */
const withField = (object: IDataObject, name: string, value: unknown) =>
	put(object, namesIn(name), value) as IDataObject;

function put(target: unknown, [key, ...rest]: string[], value: unknown): unknown {
	if (key === undefined) return value;
	const isObject = isRecord(target) && !(target instanceof InputFile);
	if (INDEX.test(key) && !isObject) {
		const list: unknown[] = Array.isArray(target) ? [...(target as unknown[])] : [];
		list[Number(key)] = put(list[Number(key)], rest, value);
		// JSON has no empty entries.
		return Array.from(list, (entry) => entry ?? null);
	}
	const object: IDataObject = isObject ? target : {};
	return { ...object, [key]: put(object[key], rest, value) };
}
