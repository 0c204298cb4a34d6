import { type Document, OpenAPIValidator } from 'openapi-backend';
import { readFileSync } from 'node:fs';
import * as http from 'node:http';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { parse } from 'yaml';

import { listen } from '../listen';

export const DESCRIPTION_FILE = join(__dirname, '../../docs/service.openapi.yaml');

/** One request with its answer, as they went over the wire. */
export interface Exchange {
	request: Message & { method: string; path: string };
	response: Message & { status: number };
}

interface Message {
	headers: Record<string, string | string[]>;
	body: string;
}

/** The description of the service, with the callback as an endpoint of its own: that is how it is checked. */
export function loadDescription(text = readFileSync(DESCRIPTION_FILE, 'utf8')): Document {
	const document = parse(text) as Document;
	const callbacks = document.paths?.['/api/generate']?.post?.callbacks ?? {};
	const [expression] = Object.values(callbacks.taskFinished ?? {});
	return { ...document, paths: { ...document.paths, '/callback': expression } } as Document;
}

/** Holds what is said over the wire against the description of the service. */
export class Description {
	private readonly validator: OpenAPIValidator<Document>;

	/** @throws where a schema of the description is none */
	constructor(document = loadDescription()) {
		this.validator = new OpenAPIValidator<Document>({
			// The validator writes into what it is given.
			definition: dereferenced(document),
			ajvOpts: { allErrors: true },
		});
		this.validator.preCompileRequestValidators();
		this.validator.preCompileResponseValidators();
		this.validator.preCompileResponseHeaderValidators();
	}

	/** What a request has that the description does not allow; empty where all is well. */
	offencesOfRequest({ method, path, headers, body }: Exchange['request']): string[] {
		const operation = this.validator.router.matchOperation({ method, path, headers });
		if (!operation) return [`${method} ${path} is not described`];
		const { errors } = this.validator.validateRequest(
			{ method, path, headers, body: body === '' ? undefined : body },
			operation,
		);
		const isJson = body === '' || String(headers['content-type']).startsWith('application/json');
		return [
			...(isJson
				? []
				: [`${method} ${path} has a body that says it is ${String(headers['content-type'])}`]),
			...inWords(`${method} ${path}`, errors),
		];
	}

	/** What an answer has that the description does not allow; empty where all is well. */
	offencesOfResponse({ request, response }: Exchange): string[] {
		const { method, path } = request;
		const { status, headers, body } = response;
		const where = `${status} of ${method} ${path}`;
		const operation = this.validator.router.matchOperation(request);
		const described = operation?.responses ?? {};
		if (!operation || !(String(status) in described || 'default' in described)) {
			return [`${where} is not described`];
		}
		const { errors } = this.validator.validateResponse(JSON.parse(body), operation, status);
		const headerErrors = this.validator.validateResponseHeaders(headers, operation, {
			statusCode: status,
		}).errors;
		return [...inWords(where, errors), ...inWords(`headers of ${where}`, headerErrors)];
	}
}

function inWords(
	where: string,
	errors: ReadonlyArray<{ instancePath?: string; message?: string }> | null | undefined,
): string[] {
	return (errors ?? []).map(({ instancePath = '', message = '' }) =>
		`${where}: ${instancePath} ${message}`.replace(/\s+/g, ' '),
	);
}

/** A copy in which every `$ref` is replaced by what it names. */
function dereferenced(document: Document): Document {
	const resolve = (value: unknown): unknown => {
		if (Array.isArray(value)) return value.map(resolve);
		if (typeof value !== 'object' || value === null) return value;
		if ('$ref' in value) return resolve(at(document, String(value.$ref)));
		return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, resolve(part)]));
	};
	return resolve(document) as Document;
}

function at(document: Document, reference: string): unknown {
	const found = reference
		.replace(/^#\//, '')
		.split('/')
		.reduce<unknown>(
			(part, name) => (part as Record<string, unknown> | undefined)?.[name],
			document,
		);
	if (found === undefined) throw new Error(`${reference} leads nowhere`);
	return found;
}

/** A gateway before the service that lets everything through and keeps a copy. */
export async function startRecorder(target: () => string) {
	const exchanges: Exchange[] = [];
	const { url, close } = await listen(async (incoming, outgoing) => {
		const { method = '', url: path = '' } = incoming;
		const headers = given(incoming.headers);
		const body = await text(incoming);
		const answer = await forward(`${target()}${path}`, { method, headers, body });
		const answered = await text(answer);
		const status = answer.statusCode ?? 0;
		exchanges.push({
			request: { method, path, headers, body },
			response: { status, headers: given(answer.headers), body: answered },
		});
		outgoing.writeHead(status, answer.headers).end(answered);
	});
	return { url, exchanges, close };
}

/** Headers without the ones that Node.js knows and nobody sent. */
const given = (headers: http.IncomingHttpHeaders) =>
	Object.fromEntries(
		Object.entries(headers).flatMap(([name, value]) =>
			value === undefined ? [] : [[name, value]],
		),
	) as Message['headers'];

function forward(
	url: string,
	{ method, headers, body }: Omit<Exchange['request'], 'path'>,
): Promise<http.IncomingMessage> {
	return new Promise((resolve, reject) => {
		const request = http.request(url, { method, headers, agent: false }, resolve);
		request.on('error', reject).end(body);
	});
}
