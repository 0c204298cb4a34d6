import type { ILoadOptionsFunctions, INodeListSearchResult } from 'n8n-workflow';

import { CREDENTIAL_TYPE } from '../service/connect';
import { describeModel, readModels, SPECIFIED_MODELS } from '../service/prices';

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
	const [listed, kind] = entered.length > 0 ? [entered, ''] : [SPECIFIED_MODELS, 'Placeholder: '];
	const isFound = (id: string) => id.toLowerCase().includes(filter.trim().toLowerCase());
	return {
		results: listed
			.filter(({ id }) => isFound(id))
			.map((model) => ({ name: kind + describeModel(model), value: model.id })),
	};
}
