import type {
	ICredentialDataDecryptedObject,
	IExecuteFunctions,
	IHttpRequestOptions,
	IWebhookFunctions,
	UserError,
} from 'n8n-workflow';

import { stopSignal } from '../n8n/internals';
import { forbiddenAddress } from '../shared/addresses';
import { anyOf, clock, settled, Stopped } from '../shared/clock';
import { findInChain, messageOf } from '../shared/itemError';
import { isRecord } from '../shared/json';
import {
	type Answer,
	closeAnswer,
	type OpenAnswer,
	readAnswer,
	UnfinishedAnswer,
} from './boundedAnswer';
import { type HttpRequest, ServiceClient, type Transport } from './client';
import { classifyAnswer } from './meaning';
import { type PricedModel, readModels } from './money';
import { isBelow, parseApiKey, readAccount } from './readService';
import { ServiceError } from './serviceError';
import type { Service } from './services';

export const CREDENTIAL_TYPE = 'mediaGenerationApi';

/** What calls the service: a run, or a webhook. */
export type Context = IExecuteFunctions | IWebhookFunctions;
/** The fields of the credential, decrypted by n8n. */
export type Credential = ICredentialDataDecryptedObject;

/** The service with one credential. */
export interface Connection {
	client: ServiceClient;
	service: Service;
	/** The API key, for signing callback addresses. It must reach no output, log or error. */
	apiKey: string;
	/** The address of the service, as `parseBaseUrl` returns it. */
	baseUrl: string;
	/** The models of the account, as the user has entered them. */
	models: readonly PricedModel[];
	openFile: OpenFile;
}

/**
 * Opens a file below the base URL with the API key, and follows no redirect.
 *
 * @param timeout milliseconds until the request fails
 * @returns the answer, whatever its status; undefined if the address is not below the base URL
 */
export type OpenFile = (
	url: string,
	timeout: number,
	giveUp: AbortSignal | undefined,
) => Promise<OpenAnswer> | undefined;

/**
 * Connects a node with the service by the node's credential. To look up a credential costs n8n more than a request. So
 * it is looked up once, and again if the service refuses the key, which may have been changed.
 *
 * @throws UserError if the credential's base URL or key cannot be used
 */
export async function connect(context: Context): Promise<Connection> {
	const lookUp = async () => await context.getCredentials<Credential>(CREDENTIAL_TYPE);
	let present = await lookUp();
	const { service, baseUrl, apiKey } = readAccount(present);
	const keys = [apiKey];
	/** Sends with the key, and once more if the service refuses a key that was changed. */
	const withKey = async <T extends OpenAnswer>(
		send: (data: Credential) => Promise<T>,
		mayRepeat = () => true,
	): Promise<T> => {
		// Several requests may be refused together. The first one finds the changed key for all.
		const used = present;
		const response = await send(used);
		const told = { ...response, body: typeof response.body === 'string' ? response.body : '' };
		if (classifyAnswer(told, Date.now()).scope !== 'key') return response;
		const lookedUp = await settled(async () => {
			const latest = await lookUp();
			return { latest, key: parseApiKey(latest.apiKey) };
		});
		// A credential that cannot be used counts as a refused key.
		if ('error' in lookedUp || !mayRepeat()) return response;
		const { latest, key } = lookedUp.value;
		if (latest.apiKey === used.apiKey || latest.baseUrl !== used.baseUrl) return response;
		if (!keys.includes(key)) keys.push(key);
		present = latest;
		closeAnswer(response);
		return await send(latest);
	};
	const transport: Transport = async (request) => {
		const isCreate = request.method === 'POST';
		const endsAt = clock.now() + request.timeoutMs;
		// The answer to a create is too dear to be cut short.
		const timeLeft = () => (isCreate ? request.timeoutMs : Math.max(0, endsAt - clock.now()));
		const send = async (data: Credential) =>
			await requestService(context, data, { ...request, timeoutMs: timeLeft() });
		// After a stop of the execution nothing is created.
		return await withKey(send, () => !isCreate || !isStopped(context));
	};
	const openFile: OpenFile = (url, timeout, giveUp) => {
		if (!URL.canParse(url) || !isBelow(baseUrl, new URL(url))) return undefined;
		const options = { method: 'GET', url, timeout, ...ANY_ANSWER } as const;
		return withKey(async (data) => await sendWithKey(context, data, options, giveUp));
	};
	const models = readModels(present.models);
	const client = new ServiceClient(transport, baseUrl, keys, service, models);
	return { client, service, apiKey, baseUrl, models, openFile };
}

const ANY_ANSWER = {
	// So that the answer can be given up at any moment.
	encoding: 'stream',
	returnFullResponse: true,
	ignoreHttpStatusErrors: true,
	disableFollowRedirect: true,
} as const;

/**
 * Sends a request to the service with n8n's HTTP helper. The credential adds the key.
 *
 * @throws ServiceError `unreachable` or `noAnswer`; UserError if n8n's protection refuses the address; Stopped if the
 *   execution was stopped during a read
 */
async function requestService(
	context: Context,
	data: Credential,
	{ timeoutMs, body, ...request }: HttpRequest,
): Promise<Answer> {
	const type = body !== undefined && { 'Content-Type': 'application/json' };
	const headers = { Accept: 'application/json', ...type };
	const options = { ...request, body, headers, timeout: timeoutMs, ...ANY_ANSWER };
	const open = async (giveUp: AbortSignal) => await sendWithKey(context, data, options, giveUp);
	const called = await settled(readAnswer(open, timeoutMs));
	if ('value' in called) return called.value;
	// A stop does not cancel a create, so something else ended it.
	if (request.method === 'GET' && isStopped(context)) throw new Stopped();
	throw explainNoResponse(called.error);
}

/** Sends a request with n8n's HTTP helper. The credential adds the key. @returns the answer, whatever its status */
async function sendWithKey(
	context: Context,
	data: Credential,
	options: IHttpRequestOptions,
	giveUp: AbortSignal | undefined,
): Promise<OpenAnswer> {
	const { httpRequestWithAuthentication: call } = context.helpers;
	const credentialsDecrypted = { id: '', name: '', type: CREDENTIAL_TYPE, data };
	// n8n has a signal of its own for each request. The credential adds this signal.
	const given = { ...options, giveUp };
	return (await call.call(context, CREDENTIAL_TYPE, given, {
		credentialsDecrypted,
	})) as OpenAnswer;
}

/**
 * Sends a request to an n8n, normally this n8n. The request has no API key.
 *
 * @param request with its `timeout`, in milliseconds to the last byte of the answer
 * @param forbidden the message if n8n's own protection refuses the address
 * @returns the answer, whatever its status; undefined if there was none
 * @throws UserError if the protection refuses the address; Stopped if the execution was stopped
 */
export async function callN8n(
	context: Context,
	request: IHttpRequestOptions & { timeout: number },
	forbidden: string,
): Promise<Answer | undefined> {
	const stop = stopSignal(context);
	const open = async (giveUp: AbortSignal): Promise<OpenAnswer> =>
		await context.helpers.httpRequest({
			...request,
			...ANY_ANSWER,
			abortSignal: anyOf(giveUp, stop),
		});
	const called = await settled(readAnswer(open, request.timeout));
	if ('value' in called) return called.value;
	if (stop?.aborted) throw new Stopped();
	const refused = forbiddenAddress(called.error, forbidden);
	if (refused) throw refused;
	return undefined;
}

const isStopped = (context: Context): boolean => stopSignal(context)?.aborted === true;

/** The system calls that connect. Only if one of them failed, the request certainly did not reach the service. */
const CONNECTING = ['connect', 'getaddrinfo'];

/** What Node.js says where the connection ended before TLS stood: nothing was sent, as a request goes out after it. */
const NO_TLS = /before secure TLS connection was established|:wrong version number:/;

/** Whether there was no connection. The code alone does not tell: a route may be lost during the wait. */
function isNotConnected(error: unknown): boolean {
	if (findInChain(error, (link) => NO_TLS.test(messageOf(link)) || undefined)) return true;
	const found = findInChain(error, (link) => {
		if (!isRecord(link)) return undefined;
		const { syscall, errors } = link;
		// A host with several addresses has one error for each address.
		const calls = Array.isArray(errors)
			? errors.map((each) => isRecord(each) && each.syscall)
			: [syscall];
		return calls.some(Boolean) ? calls : undefined;
	});
	return found?.every((call) => CONNECTING.includes(String(call))) ?? false;
}

/** The certificate errors that n8n finds before it sends anything. An alert comes from the service. */
const CERTIFICATE = /^(?!.*ALERT).*(CERT|SELF_SIGNED|ERR_TLS|UNABLE_TO_VERIFY)/;

/** Explains a missing answer. Of the original error only the code is taken: the error contains the key. */
function explainNoResponse(error: unknown): ServiceError | UserError {
	const forbidden = forbiddenAddress(error, 'n8n does not let this node call the service');
	if (forbidden !== undefined) return forbidden;
	if (error instanceof UnfinishedAnswer && error.isTooLarge) {
		return new ServiceError('unexpectedAnswer', error.message, {
			description:
				"Check that the 'Base URL' of the credential is the address of the media generation service.",
		});
	}
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
