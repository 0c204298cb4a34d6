import type {
	ICredentialDataDecryptedObject,
	ICredentialsHelper,
	ICredentialType,
	IHttpRequestOptions,
} from 'n8n-workflow';
import { UnexpectedError } from 'n8n-workflow';

/**
 * The credential as n8n handles it: looked up for each use, and the type's own `authenticate` on every request.
 *
 * @param type the credential type, as the present process has loaded it
 * @param lookUp reads the credential from n8n's database
 */
export function credentialsHelper(
	{ authenticate, properties }: ICredentialType,
	lookUp: () => Promise<ICredentialDataDecryptedObject>,
): ICredentialsHelper {
	if (typeof authenticate !== 'function') throw new UnexpectedError('No authenticate function');
	const helper: Partial<ICredentialsHelper> = {
		getDecrypted: lookUp,
		authenticate: async (credentials, _type, options) =>
			await authenticate(credentials, options as IHttpRequestOptions),
		getParentTypes: () => [],
		isCredentialUsableByNode: () => true,
		preAuthentication: async () => undefined,
		runPreAuthentication: async () => undefined,
		getCredentialsProperties: () => properties,
	};
	return helper as ICredentialsHelper;
}
