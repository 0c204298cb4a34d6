import type {
	ILoadOptionsFunctions,
	INodeListSearchResult,
	INodeProperties,
	ResourceMapperField,
	ResourceMapperFields,
} from 'n8n-workflow';

import { CREDENTIAL_TYPE } from '../service/connect';
import {
	type InputField,
	markOf,
	OWN_FIELDS,
	panelType,
	readInputExample,
} from '../service/inputExample';
import {
	describeModel,
	firstModel,
	type PricedModel,
	readModels,
	SPECIFIED_MODELS,
} from '../service/money';
import { ItemError } from '../shared/itemError';
import { isEmpty } from '../shared/parameters';

/** The model by its place in the list of the credential, or by its identifier. */
export const modelField: INodeProperties = {
	displayName: 'Model',
	name: 'model',
	type: 'resourceLocator',
	default: { mode: 'list', value: '' },
	modes: [
		{
			displayName: 'From List',
			name: 'list',
			type: 'list',
			typeOptions: { searchListMethod: 'searchModels', searchable: true },
		},
		{
			displayName: 'By ID',
			name: 'id',
			type: 'string',
			placeholder: 'e.g. provider/model-name',
		},
	],
	description:
		"Model that makes the result. The list has the models of the credential, under 'Models'.",
};

/**
 * The list of the field *Model*: the models of the credential. If there are none, and no service of the table is
 * chosen, the models of the specification, which most services do not have.
 *
 * @param filter what the user has typed into the list's search field
 */
export async function searchModels(
	this: ILoadOptionsFunctions,
	filter = '',
): Promise<INodeListSearchResult> {
	const { models, service } = await this.getCredentials(CREDENTIAL_TYPE);
	const entered = readModels(models);
	const nameOf = (model: PricedModel) =>
		// The price of a placeholder is that of no account.
		entered.length > 0 ? describeModel(model) : `Placeholder: ${model.id}`;
	const listed = entered.length > 0 || !isEmpty(service) ? entered : SPECIFIED_MODELS;
	const isFound = (id: string) => id.toLowerCase().includes(filter.trim().toLowerCase());
	return {
		results: listed
			.filter(({ id }) => isFound(id))
			.map((model) => ({ name: nameOf(model), value: model.id })),
	};
}

/** The fields of the chosen model, as its example in the credential has them. */
export const modelFields: INodeProperties = {
	displayName: 'Model Fields',
	name: 'modelFields',
	type: 'resourceMapper',
	noDataExpression: true,
	default: { mappingMode: 'defineBelow', value: null },
	description:
		"Further input of the model, as its example in the credential has it, under 'Models'",
	typeOptions: {
		loadOptionsDependsOn: ['model.value'],
		resourceMapper: {
			resourceMapperMethod: 'loadModelFields',
			mode: 'map',
			valuesLabel: 'Model Fields',
			fieldWords: { singular: 'field', plural: 'fields' },
			addAllFields: true,
			supportAutoMap: false,
			multiKeyMatch: false,
			refreshStaleSchemaOnOpen: true,
		},
	},
};

const NO_EXAMPLE =
	"To choose the aspect ratio and the like here, enter an example of this model's input in the credential, under 'Models'.";

/**
 * The fields of *Model Fields*. The panel shows what is needed and what has a value or a list. The user may add the others.
 */
export async function loadModelFields(this: ILoadOptionsFunctions): Promise<ResourceMapperFields> {
	const { models } = await this.getCredentials(CREDENTIAL_TYPE);
	const chosen: unknown = this.getCurrentNodeParameter('model', { extractValue: true });
	const kind = this.getCurrentNodeParameter('resource') === 'video' ? 'video' : 'image';
	const all = readModels(models);
	const id = isEmpty(chosen) ? firstModel(kind, all) : chosen;
	const model = all.find((each) => each.id === id);
	try {
		const fields = readInputExample(model?.inputExample).filter(
			({ name }) => !OWN_FIELDS[kind].includes(name),
		);
		const shown = fields.map(shownField);
		const mark = { ...markOf(String(id)), ...NOT_TO_FILL_IN };
		return { fields: shown.length > 0 ? [...shown, mark] : [], emptyFieldsNotice: NO_EXAMPLE };
	} catch (error) {
		const { message, description = '' } = ItemError.from(error);
		const emptyFieldsNotice = `The input example of '${String(id)}' in the credential ${message}. ${description}`;
		return { fields: [], emptyFieldsNotice };
	}
}

/** n8n shows no description of such a field, so the label has it. */
const MOST_LABEL = 100;

const NOT_TO_FILL_IN = { defaultMatch: false, required: false, removed: true };

/** What takes a choice back. n8n stores nothing for an empty value. */
const NOT_SENT = { name: '(Not Sent)', value: '' };

/** A field without a value: what nobody entered is not sent. */
function shownField(field: InputField): ResourceMapperField {
	const { name, type, isRequired, isUsual, description } = field;
	const told = description === undefined ? '' : `: ${description.replace(/\s+/g, ' ')}`;
	const label = `${name}${isRequired ? ' (required)' : ''}${told}`;
	const choices = field.choices ?? (type === 'boolean' ? [true, false] : []);
	const options = choices.map((each) => ({ name: String(each), value: each }));
	return {
		...{ ...NOT_TO_FILL_IN, id: name, display: true, required: isRequired, removed: !isUsual },
		displayName: label.length > MOST_LABEL ? `${label.slice(0, MOST_LABEL)}…` : label,
		type: panelType(field),
		...(options.length > 0 && { options: isRequired ? options : [NOT_SENT, ...options] }),
	};
}
