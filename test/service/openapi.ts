import { type Document, OpenAPIBackend } from 'openapi-backend';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import * as http from 'node:http';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { parse } from 'yaml';

import { listen } from '../listen';

export const DESCRIPTION_FILE = join(__dirname, '../../docs/service.openapi.yaml');

/** One request with its answer, as they went over the wire. */
interface Exchange {
	request: Message & { method: string; path: string };
	response: Message & { status: number };
}

interface Message {
	headers: Record<string, string | string[]>;
	body: string;
}

/**
 * The description of the service, to hold what is said over the wire against.
 *
 * @throws where the description is none
 */
export async function loadDescription(description = readFileSync(DESCRIPTION_FILE, 'utf8')) {
	const definition = parse(description) as Document;
	const callbacks = definition.paths?.['/api/generate']?.post?.callbacks ?? {};
	const [callback] = Object.values(callbacks.taskFinished ?? {});
	// The callback is checked as an endpoint of its own.
	Object.assign(definition.paths ?? {}, { '/callback': callback });
	// Not `quick`, it would want a description of OpenAPI 3.0.
	const options = { strict: true, quick: true, ajvOpts: { allErrors: true } };
	const { validator, router } = await new OpenAPIBackend({ definition, ...options }).init();
	validator.preCompileRequestValidators();
	validator.preCompileResponseValidators();
	validator.preCompileResponseHeaderValidators();

	return {
		/** What a request has that the description does not allow; empty where all is well. */
		offencesOfRequest({ method, path, headers, body }: Exchange['request']): string[] {
			const where = `${method} ${path}`;
			const operation = router.matchOperation({ method, path, headers });
			if (!operation) return [`${where} is not described`];
			const given = { method, path, headers, body: body === '' ? undefined : body };
			const { errors } = validator.validateRequest(given, operation);
			const type = String(headers['content-type']);
			const isJson = body === '' || type.startsWith('application/json');
			return [
				...(isJson ? [] : [`${where} has a body that says it is ${type}`]),
				...inWords(where, errors),
			];
		},

		/** What an answer has that the description does not allow; empty where all is well. */
		offencesOfResponse({ request, response }: Exchange): string[] {
			const { status, headers, body } = response;
			const where = `${status} of ${request.method} ${request.path}`;
			const operation = router.matchOperation(request);
			const described = operation?.responses ?? {};
			if (!operation || !(String(status) in described || 'default' in described)) {
				return [`${where} is not described`];
			}
			const { errors } = validator.validateResponse(JSON.parse(body), operation, status);
			const ofHeaders = validator.validateResponseHeaders(headers, operation, {
				statusCode: status,
			});
			return [...inWords(where, errors), ...inWords(`headers of ${where}`, ofHeaders.errors)];
		},
	};
}

const inWords = (
	where: string,
	errors: ReadonlyArray<{ instancePath?: string; message?: string }> | null | undefined,
) =>
	(errors ?? []).map(({ instancePath = '', message = '' }) =>
		`${where}: ${instancePath} ${message}`.replace(/\s+/g, ' '),
	);

/** A gateway before the service that lets everything through and keeps a copy. */
export async function startRecorder(target: () => string) {
	const exchanges: Exchange[] = [];
	const { url, close } = await listen(async (incoming, outgoing) => {
		const { method = '', url: path = '' } = incoming;
		const headers = incoming.headers as Message['headers'];
		const body = await text(incoming);
		const forwarded = http.request(`${target()}${path}`, { method, headers, agent: false });
		const [answer] = (await once(forwarded.end(body), 'response')) as [http.IncomingMessage];
		const { statusCode: status = 0, headers: answeredHeaders } = answer;
		const answered = await text(answer);
		exchanges.push({
			request: { method, path, headers, body },
			response: { status, headers: answeredHeaders as Message['headers'], body: answered },
		});
		outgoing.writeHead(status, answeredHeaders).end(answered);
	});
	return { url, exchanges, close };
}
