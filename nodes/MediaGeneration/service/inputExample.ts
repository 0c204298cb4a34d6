import type { IDataObject } from 'n8n-workflow';

import { ItemError, messageOf } from '../shared/itemError';
import { isRecord, isScalar } from '../shared/json';

/** A value of a list. */
export type Scalar = string | number | boolean;

/** A field of a model's input. */
export interface InputField {
	name: string;
	type: 'string' | 'number' | 'boolean' | 'array' | 'object';
	isRequired: boolean;
	/** Whether it is among the first that a user looks for: what an example names, and of a schema what is needed or has a list. */
	isUsual: boolean;
	/** Whether the model has no other fields than those listed: a schema may say so, an example never does. */
	isOfAll?: boolean;
	/** What the documentation says about it. */
	description?: string;
	/** The only values that it takes. */
	choices?: Scalar[];
}

/** The fields of the input that the panel has itself. */
export const OWN_FIELDS = { image: ['prompt'], video: ['prompt', 'image_url', 'duration'] };

/**
 * The kind of a field in n8n's panel. A boolean is a list there: n8n's switch cannot be empty, so a field that the user has
 * not touched would be sent, or be shown as off and not be sent.
 */
export const panelType = ({ type, choices }: InputField) =>
	choices || type === 'boolean' ? 'options' : type;

/** What stands beside the fields in n8n's store, and is never shown: the model that they are the fields of. */
export const markOf = (model: string) => ({
	id: `fields of ${model}`,
	displayName: model,
	display: false,
});

const WAY_OUT =
	"Copy the input of the model from its documentation, from the first { to the last }. Names have double quotes, and there is no '…'.";

/** @param what what is wrong, after `The input example of '…' ` */
const unreadable = (what: string, description: string) => new ItemError(what, { description });

/** Texts, which stay as they are; and comments, or the comma behind the last entry, which JSON does not have. */
const COMMENTS = /("(?:[^"\\]|\\.)*")|\/\/.*|\/\*[\s\S]*?\*\//g;
const LAST_COMMAS = /("(?:[^"\\]|\\.)*")|,(?=\s*[\]}])/g;

/**
 * The fields of a model's input, as its documentation shows the input: an example, or a JSON Schema. If the body of a whole
 * request is given, its `input` counts; of an OpenAPI document its schema `Input`. No value is read: an example's values are
 * those of somebody else.
 *
 * @param text JSON, also with comments and commas behind the last entries; an empty text has no fields
 * @throws ItemError if the text is none of these
 */
export function readInputExample(text: unknown): InputField[] {
	const json = typeof text === 'string' ? text.trim() : '';
	if (json === '') return [];
	let root: unknown;
	try {
		root = JSON.parse(json.replace(COMMENTS, '$1').replace(LAST_COMMAS, '$1'));
	} catch (error) {
		throw unreadable('is not valid JSON', `${WAY_OUT} The parser says: ${messageOf(error)}`);
	}
	if (!isRecord(root)) throw unreadable('is not a JSON object', WAY_OUT);
	const isApi = 'openapi' in root || 'swagger' in root;
	const schema = new Schema(root, isApi ? inputSchemaIn(root) : root);
	return schema.isSchema ? schema.fields() : exampleFields(inputIn(root));
}

/** @throws ItemError if an OpenAPI document does not say which of its schemas is that of the input */
function inputSchemaIn({ components, definitions }: IDataObject): IDataObject {
	const { schemas = definitions }: IDataObject = isRecord(components) ? components : {};
	const named = Object.entries(Object(schemas) as IDataObject).filter(([name]) =>
		name.endsWith('Input'),
	);
	const [, schema] =
		(named.find(([name]) => name === 'Input') ?? (named.length === 1 && named[0])) || [];
	if (isRecord(schema)) return schema;
	const wayOut = "Copy only the schema of the model's input, from its { to its }.";
	throw unreadable("is an OpenAPI document without one schema 'Input'", wayOut);
}

const inputIn = (body: IDataObject): IDataObject =>
	typeof body.model === 'string' && isRecord(body.input) ? body.input : body;

const exampleFields = (example: IDataObject): InputField[] =>
	Object.entries(example).map(([name, value]) => ({
		name,
		type: typeOf(value),
		isRequired: false,
		isUsual: true,
	}));

const typeOf = (value: unknown): InputField['type'] => {
	if (Array.isArray(value)) return 'array';
	const type = typeof value;
	return type === 'number' || type === 'boolean' || isRecord(value) ? (type as 'object') : 'string';
};

/** How far a schema may lead from one place to the next: it may lead to itself. */
const MOST_STEPS = 5;

/** A JSON Schema, of which the usual words are known. */
class Schema {
	readonly isSchema: boolean;

	private readonly top: IDataObject;

	/** Whether there may be fields that the schema does not list, or that a variant of the schema has. */
	private isOpen = false;

	/**
	 * @param root the document, in which references lead from place to place
	 * @param start where in it the schema stands
	 */
	constructor(
		private readonly root: IDataObject,
		start: IDataObject,
	) {
		const top = this.resolved(start);
		this.isSchema = isRecord(top.properties) && Object.values(top.properties).every(isRecord);
		const { model, input }: IDataObject = this.isSchema ? Object(top.properties) : {};
		this.top = model && isRecord(input) ? this.resolved(input) : top;
		const { additionalProperties: others } = this.top;
		this.isOpen ||= others === true || isRecord(others);
	}

	fields(): InputField[] {
		const { properties, required } = this.top;
		const isOfAll = !this.isOpen;
		const isRequired = (name: string) => listOfAny(required).includes(name);
		return Object.entries(Object(properties) as IDataObject).flatMap(([name, property]) => {
			const field = isRecord(property) ? this.resolved(property) : {};
			// The service writes such a field, and does not read it.
			return field.readOnly === true ? [] : { ...fieldOf(name, field, isRequired(name)), isOfAll };
		});
	}

	/** What a schema says itself, with what it refers to and what its variants say. */
	private resolved(schema: IDataObject, steps = 0): IDataObject {
		if (steps > MOST_STEPS) return {};
		const { $ref, allOf, anyOf, oneOf, ...own } = schema;
		const deeper = (part: IDataObject) => this.resolved(part, steps + 1);
		const parts = [...this.at($ref), ...listOf(allOf)].map(deeper);
		const variants = [...listOf(anyOf), ...listOf(oneOf)]
			.map(deeper)
			.filter(({ type }) => type !== 'null');
		this.isOpen ||= variants.filter(({ properties }) => isRecord(properties)).length > 1;
		const all = [...parts, ...joined(variants), own];
		const merged = Object.assign({}, ...all) as IDataObject;
		if (!all.some(({ properties }) => isRecord(properties))) return merged;
		const properties = Object.assign({}, ...all.map((part) => part.properties)) as IDataObject;
		return { ...merged, properties, required: all.flatMap(({ required }) => listOfAny(required)) };
	}

	/** The place in the schema that a reference such as `#/$defs/Size` names. */
	private at(reference: unknown): IDataObject[] {
		if (typeof reference !== 'string' || !reference.startsWith('#/')) return [];
		const names = reference.slice(2).split('/');
		const place = names.reduce<unknown>(
			(inner, name) => (isRecord(inner) && Object.hasOwn(inner, name) ? inner[name] : undefined),
			this.root,
		);
		return isRecord(place) ? [place] : [];
	}
}

const listOfAny = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);
const listOf = (value: unknown): IDataObject[] => listOfAny(value).filter(isRecord);

/** One schema for several variants: their lists of values together; otherwise the variant with a list, or the first. */
function joined(variants: IDataObject[]): IDataObject[] {
	const lists = variants.map(choicesOf);
	const [first] = variants;
	if (first === undefined || variants.length === 1) return variants;
	if (lists.every(({ length }) => length > 0)) return [{ ...first, enum: lists.flat() }];
	return [variants[lists.findIndex(({ length }) => length > 0)] ?? first];
}

const choicesOf = ({ enum: list, const: only }: IDataObject): Scalar[] =>
	(Array.isArray(list) ? list : [only]).filter(isScalar);

function fieldOf(name: string, schema: IDataObject, isRequired: boolean): InputField {
	const choices = choicesOf(schema);
	const { description, title } = schema;
	const told = [description, title].find((text) => typeof text === 'string' && text.trim() !== '');
	return {
		name,
		type: schemaType(schema),
		isRequired,
		isUsual: isRequired || choices.length > 0,
		...(typeof told === 'string' && { description: told.trim() }),
		...(choices.length > 0 && { choices: [...new Set(choices)] }),
	};
}

const TYPES = ['string', 'boolean', 'array', 'object'] as const;

function schemaType({ type, default: value, enum: list, properties, items }: IDataObject) {
	const [named] = [type].flat().filter((each) => each !== 'null');
	if (named === 'integer' || named === 'number') return 'number';
	const known = TYPES.find((each) => each === named);
	if (known) return known;
	if (properties) return 'object';
	return items ? 'array' : typeOf(value ?? listOfAny(list)[0]);
}
