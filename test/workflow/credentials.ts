import {
	type ICredentialDataDecryptedObject,
	type ICredentialType,
	type IHttpRequestOptions,
	ICredentialsHelper,
	UnexpectedError,
} from 'n8n-workflow';

/** The credential as n8n handles it: looked up for each use, and the type's own `authenticate` on every request. */
class CredentialsHelper extends ICredentialsHelper {
	constructor(
		private readonly type: ICredentialType,
		private readonly lookUp: () => Promise<ICredentialDataDecryptedObject>,
	) {
		super();
	}

	async getDecrypted(): Promise<ICredentialDataDecryptedObject> {
		return await this.lookUp();
	}

	async authenticate(
		credentials: ICredentialDataDecryptedObject,
		_type: string,
		options: IHttpRequestOptions,
	): Promise<IHttpRequestOptions> {
		const { authenticate } = this.type;
		if (typeof authenticate !== 'function') throw new UnexpectedError('No authenticate function');
		return await authenticate(credentials, options);
	}

	getParentTypes = () => [];

	isCredentialUsableByNode = () => true;

	preAuthentication = async () => undefined;

	runPreAuthentication = async () => undefined;

	getCredentialsProperties = () => this.type.properties;

	getCredentials = async () => await Promise.reject(new UnexpectedError('Not part of a run'));

	updateCredentials = async () => {};

	updateCredentialsOauthTokenData = async () => {};
}

/**
 * @param type the credential type, as the present process has loaded it
 * @param lookUp reads the credential from n8n's database
 */
export const credentialsHelper = (
	type: ICredentialType,
	lookUp: () => Promise<ICredentialDataDecryptedObject>,
): ICredentialsHelper => new CredentialsHelper(type, lookUp);
