import type { ICredentialDataDecryptedObject, IExecuteFunctions } from 'n8n-workflow';

import { hasText } from '../shared/json';
import { internalsOf, modeOf } from './internals';

/**
 * Whether the items of a run may have different credentials: an expression in a credential is evaluated for an item. To
 * look up the credential of each item would cost n8n a query of its database for each. It relies on n8n's
 * `credentialsHelper` (n8n 2.41), shown by test/e2e/account.test.ts.
 *
 * @param type the name of the credential's type
 * @returns also true if n8n does not tell
 */
export async function mayDifferByItem(context: IExecuteFunctions, type: string): Promise<boolean> {
	const { additionalData, node } = internalsOf(context);
	const { credentialsHelper } = additionalData ?? {};
	const details = node?.credentials?.[type];
	const mode = modeOf(context);
	if (credentialsHelper === undefined || details === undefined || mode === undefined) return true;
	const written: ICredentialDataDecryptedObject = await credentialsHelper.getDecrypted(
		additionalData as Parameters<typeof credentialsHelper.getDecrypted>[0],
		details,
		type,
		mode,
		undefined,
		true,
	);
	return hasText(written, (text) => text.startsWith('='));
}
