import type { IWorkflowExecuteAdditionalData } from 'n8n-workflow';
import { EventEmitter } from 'node:events';

/** Express's request and response, as n8n hands them to a webhook. */
export type Express = Required<
	Pick<IWorkflowExecuteAdditionalData, 'httpRequest' | 'httpResponse'>
>;

/** What stands in for express's response: what was answered, and the events of its connection. */
export class FakeResponse extends EventEmitter {
	statusCode = 200;

	body: unknown;

	readonly headers: Record<string, string> = {};

	/** Whether n8n has answered, also if nobody listens any more. */
	writableEnded = false;

	destroyed = false;

	/** @param send brings the answer on its way, and ends the connection in its time; at once where left out */
	constructor(private readonly send = (response: FakeResponse) => response.end()) {
		super();
	}

	status(code: number): this {
		this.statusCode = code;
		return this;
	}

	set(name: string, value: string): this {
		this.headers[name] = value;
		return this;
	}

	json(body: unknown): this {
		this.body = body;
		this.send(this);
		return this;
	}

	/** n8n has stored the execution and answers, or could not and says so. */
	end(statusCode = this.statusCode): void {
		this.statusCode = statusCode;
		this.writableEnded = true;
		this.close();
	}

	/** The sender is gone. */
	close(): void {
		this.destroyed = true;
		this.emit('close');
	}
}

/** What stands in for express's request. */
interface FakeRequest {
	/** With the query. */
	path: string;
	query: Record<string, unknown>;
	body: unknown;
	headers: Record<string, string>;
	/** The body as it came; the body as JSON where left out. */
	rawBody?: Buffer;
}

/** Hands a request and its response to n8n. */
export function expressOf(request: FakeRequest, response: FakeResponse): Express {
	const { path, query, body, headers, rawBody = Buffer.from(JSON.stringify(body)) } = request;
	const httpRequest = {
		method: 'POST',
		originalUrl: path,
		query,
		params: {},
		body,
		headers,
		rawBody,
	};
	return { httpRequest, httpResponse: response } as unknown as Express;
}
