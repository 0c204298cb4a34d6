import type {
	ICredentialDataDecryptedObject,
	IExecuteFunctions,
	IHttpRequestOptions,
	IWebhookFunctions,
	UserError,
} from 'n8n-workflow';

import { Stopped } from '../shared/clock';
import { findInChain } from '../shared/itemError';
import { isRecord } from '../shared/json';
import { forbiddenAddress } from '../shared/privateAddress';
import { settled } from '../shared/promises';
import { parseApiKey, parseBaseUrl } from './baseUrl';
import { type HttpRequest, type HttpResponse, ServiceClient, type Transport } from './client';
import { ServiceError } from './serviceError';

export const CREDENTIAL_TYPE = 'mediaGenerationApi';

export type Context = IExecuteFunctions | IWebhookFunctions;
export type Credential = ICredentialDataDecryptedObject;

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

/** What brings an answer of any status, and from no other address than the one that was called. */
const ANY_ANSWER = {
	// Text, so that an answer that is not JSON can be told and shown.
	encoding: 'text',
	returnFullResponse: true,
	ignoreHttpStatusErrors: true,
	disableFollowRedirect: true,
} as const;

/**
 * Sends a request to the service by n8n's own HTTP helper: with n8n's proxies and limits, and the key that the credential
 * adds.
 *
 * @throws ServiceError `unreachable` or `noAnswer`; UserError where n8n's protection refuses the address; Stopped where the
 *   execution was stopped during a read
 */
async function requestService(
	context: Context,
	data: Credential,
	{ timeoutMs, body, ...request }: HttpRequest,
): Promise<HttpResponse> {
	const { httpRequestWithAuthentication: call } = context.helpers;
	const accept = { Accept: 'application/json' };
	const json = body !== undefined && {
		body,
		headers: { ...accept, 'Content-Type': 'application/json' },
	};
	const options = { ...request, headers: accept, ...json, timeout: timeoutMs, ...ANY_ANSWER };
	const credentialsDecrypted = { id: '', name: '', type: CREDENTIAL_TYPE, data };
	const sent = call.call(context, CREDENTIAL_TYPE, options, { credentialsDecrypted });
	const called = await settled(sent);
	if ('value' in called) return asText(called.value);
	// A create is not broken off by a stop: what ended it is something else.
	if (request.method === 'GET' && isStopped(context)) throw new Stopped();
	throw explainNoResponse(called.error);
}

/**
 * Sends a request to an n8n, this one as a rule. It carries no API key.
 *
 * @param forbidden what to tell the user where n8n's own protection refuses the address
 * @returns the answer, whatever its status; undefined where there was none
 * @throws UserError where the protection refuses the address; Stopped where the execution was stopped
 */
export async function callN8n(
	context: Context,
	request: IHttpRequestOptions,
	forbidden: string,
): Promise<HttpResponse | undefined> {
	const abortSignal = stopSignal(context);
	const options = { ...request, ...ANY_ANSWER, ...(abortSignal && { abortSignal }) };
	const called = await settled(async () => asText(await context.helpers.httpRequest(options)));
	if ('value' in called) return called.value;
	if (abortSignal?.aborted) throw new Stopped();
	const refused = forbiddenAddress(called.error, forbidden);
	if (refused) throw refused;
	return undefined;
}

/** An answer of n8n's request helper, with its body as it was sent. */
function asText(answer: unknown): HttpResponse {
	const { body, ...head } = answer as Omit<HttpResponse, 'body'> & { body: unknown };
	if (typeof body === 'string') return { ...head, body };
	return { ...head, body: body === undefined || body === null ? '' : JSON.stringify(body) };
}

const stopSignal = (context: Context) =>
	'getExecutionCancelSignal' in context ? context.getExecutionCancelSignal() : undefined;

const isStopped = (context: Context): boolean => stopSignal(context)?.aborted === true;

/** Only where one of these failed did no connection come about, and can the request not have reached the service. */
const CONNECTING = ['connect', 'getaddrinfo'];

/** Whether it could not connect. A code alone does not tell: a route may be lost while the answer is awaited. */
function isNotConnected(error: unknown): boolean {
	const found = findInChain(error, (link) => {
		if (!isRecord(link)) return undefined;
		const { syscall, errors } = link;
		// A host with several addresses: one error for each of them.
		const calls = Array.isArray(errors)
			? errors.map((each) => isRecord(each) && each.syscall)
			: [syscall];
		return calls.some(Boolean) ? calls : undefined;
	});
	return found?.every((call) => CONNECTING.includes(String(call))) ?? false;
}

/** What n8n finds wrong with the service's certificate, before it sends anything; an alert comes from the service. */
const CERTIFICATE = /^(?!.*ALERT).*(CERT|SELF_SIGNED|ERR_TLS|UNABLE_TO_VERIFY)/;

/**
 * Says what happened where no answer came. Made anew from the error's code alone: the original carries the
 * request with its headers, and so the key.
 */
function explainNoResponse(error: unknown): ServiceError | UserError {
	const forbidden = forbiddenAddress(error, 'n8n does not let this node call the service');
	if (forbidden !== undefined) return forbidden;
	const code = findInChain(error, (link) =>
		isRecord(link) && typeof link.code === 'string' ? link.code : undefined,
	);
	const said = code === undefined ? '' : ` The network said: ${code}.`;
	if (isNotConnected(error)) {
		return new ServiceError('unreachable', 'The service cannot be reached: n8n could not connect', {
			description: `Check the 'Base URL' of the credential, and that this n8n may open connections to it.${said}`,
		});
	}
	if (code !== undefined && CERTIFICATE.test(code)) {
		return new ServiceError('unreachable', "The service's TLS certificate is not trusted", {
			description: `Check the 'Base URL' of the credential, or have n8n trust the certificate's authority.${said}`,
		});
	}
	return new ServiceError('noAnswer', 'The service gave no complete answer', {
		description: `The connection was lost, or the answer took too long.${said}`,
	});
}
