import type { ILoadOptionsFunctions, INodeListSearchResult } from 'n8n-workflow';

import { CREDENTIAL_TYPE } from '../service/connect';
import { describeModel, type PricedModel, readModels, SPECIFIED_MODELS } from '../service/prices';

/**
 * The list of the field *Model*: the models of the credential. If there are none, the models of the specification, which
 * most services do not have.
 *
 * @param filter what the user has typed into the list's search field
 */
export async function searchModels(
	this: ILoadOptionsFunctions,
	filter = '',
): Promise<INodeListSearchResult> {
	const { models } = await this.getCredentials(CREDENTIAL_TYPE);
	const entered = readModels(models);
	const nameOf = (model: PricedModel) =>
		// The price of a placeholder is that of no account.
		entered.length > 0 ? describeModel(model) : `Placeholder: ${model.id}`;
	const listed = entered.length > 0 ? entered : SPECIFIED_MODELS;
	const isFound = (id: string) => id.toLowerCase().includes(filter.trim().toLowerCase());
	return {
		results: listed
			.filter(({ id }) => isFound(id))
			.map((model) => ({ name: nameOf(model), value: model.id })),
	};
}
