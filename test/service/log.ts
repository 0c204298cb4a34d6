import type { FastifyInstance, FastifyRequest } from 'fastify';

/** A request that reached the service. */
export interface LoggedRequest {
	/** Milliseconds since the epoch. */
	readonly at: number;
	readonly method: string;
	/** With the query, as it stood in the request. */
	readonly path: string;
	/** The task that was created, read or whose media was asked for. */
	taskId?: string;
	/** Left out while unanswered, and for a connection that was dropped. */
	status?: number;
	readonly authorization?: string;
	readonly host: 'api' | 'media';
	/** The client's port, by which connections can be counted. */
	readonly remotePort: number;
}

/** Paths of the page and of the control interface, which are no part of the service. */
const OWN_PATHS = /^\/(?:$|\?|control\/|page\/|favicon)/;

/** What clients asked of the service, in the order of arrival. */
export class RequestLog {
	readonly entries: LoggedRequest[] = [];
	private readonly byRequest = new WeakMap<FastifyRequest, LoggedRequest>();

	/** Logs every request to a server. */
	watch(app: FastifyInstance, host: LoggedRequest['host']): void {
		app.addHook('onRequest', (request, _reply, done) => {
			if (host === 'media' || !OWN_PATHS.test(request.url)) this.add(request, host);
			done();
		});
		app.addHook('onResponse', (request, reply, done) => {
			const entry = this.byRequest.get(request);
			if (entry) entry.status ??= reply.statusCode;
			done();
		});
	}

	/** Notes which task a request was about. */
	concerns(request: FastifyRequest, taskId: string): void {
		const entry = this.byRequest.get(request);
		if (entry) entry.taskId = taskId;
	}

	private add(request: FastifyRequest, host: LoggedRequest['host']): void {
		const { authorization } = request.headers;
		const entry: LoggedRequest = {
			at: Date.now(),
			method: request.method,
			path: request.url,
			host,
			remotePort: request.socket.remotePort ?? 0,
			...(authorization !== undefined && { authorization }),
		};
		this.entries.push(entry);
		this.byRequest.set(request, entry);
	}
}
