import { settled } from '../shared/promises';
import { parseApiKey, parseBaseUrl } from './baseUrl';
import { ServiceClient, type Transport } from './client';
import {
	type Context,
	type Credential,
	CREDENTIAL_TYPE,
	isStopped,
	requestService,
} from './httpRequest';

/** The service as one credential sees it. */
export interface Connection {
	client: ServiceClient;
	/** The API key, for signing callback addresses. It must reach no output, log or error. */
	apiKey: string;
	/** The address of the service, as `parseBaseUrl` returns it. */
	baseUrl: string;
}

/** The account that tasks are for. */
export type Account = Pick<Connection, 'apiKey' | 'baseUrl'>;

/**
 * Connects a node's context with the service, by the node's credential. Looking a credential up costs n8n more than
 * a request, so it is done once, and again where the service refuses the key: it may have been changed meanwhile.
 *
 * @param known the credential, where it was looked up before
 * @throws UserError where the credential's base URL or key cannot be used
 */
export async function connect(context: Context, known?: Credential): Promise<Connection> {
	const lookUp = async () => await context.getCredentials<Credential>(CREDENTIAL_TYPE);
	let present = known ?? (await lookUp());
	const baseUrl = parseBaseUrl(present.baseUrl);
	const apiKey = parseApiKey(present.apiKey);
	const keys = [apiKey];
	const transport: Transport = async (request) => {
		// Requests that are refused together find the key changed by the first of them.
		const used = present;
		const response = await requestService(context, used, request);
		if (!REFUSED_KEY.includes(response.statusCode)) return response;
		const lookedUp = await settled(async () => {
			const latest = await lookUp();
			return { latest, key: parseApiKey(latest.apiKey) };
		});
		// Nothing is created any more once the execution was stopped.
		const isOver = request.method === 'POST' && isStopped(context);
		// A credential that cannot be used any more is no other trouble than a key that is refused.
		if ('error' in lookedUp || isOver) return response;
		const { latest, key } = lookedUp.value;
		if (latest.apiKey === used.apiKey || latest.baseUrl !== used.baseUrl) return response;
		if (!keys.includes(key)) keys.push(key);
		present = latest;
		return await requestService(context, latest, request);
	};
	return { client: new ServiceClient(transport, baseUrl, keys), apiKey, baseUrl };
}

const REFUSED_KEY = [401, 403];
