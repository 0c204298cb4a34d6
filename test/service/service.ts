import { type FastifyInstance, type FastifyReply, type FastifyRequest, fastify } from 'fastify';
import { randomUUID } from 'node:crypto';
import { setMaxListeners } from 'node:events';

import { answerErrors, drop, holdBack, sendAnswer } from './answers';
import type { LoggedCallback } from './callbacks';
import { parseCreate } from './createRequest';
import { ofThisProcess } from './effects';
import { mediaRoutes } from './media/routes';
import { ServiceModel, type Taken } from './model';
import { fetchFiles, post } from './outgoing';
import type { Outcome, Settings } from './settings';
import type { SimulatedTask } from './tasks';

export type { SimulatedTask } from './tasks';

/** A request that reached the service. */
export interface LoggedRequest {
	/** Milliseconds since the epoch. */
	readonly at: number;
	readonly method: string;
	/** With the query, as it stood in the request. */
	readonly path: string;
	/** Left out while unanswered, and for a connection that was dropped. */
	status?: number;
	readonly authorization?: string;
	readonly host: 'api' | 'media';
}

const HOST = '127.0.0.1';
/** Reference images travel inside the input as data URIs. */
const BODY_LIMIT = 64 * 1024 * 1024;

interface ServiceOptions {
	/** Port of the API; 0, the default, takes any. */
	port?: number;
	/** Port of the media; 0, the default, takes any. */
	mediaPort?: number;
	/** A path in front of `/api`, such as `/v1`. */
	pathPrefix?: string;
	settings?: Settings;
}

/** The running service: its addresses, what happened so far, and the means to steer it. */
export type SimulatedService = Awaited<ReturnType<typeof startService>>;

/** Starts the service of the specification on loopback: the API on one port, the media on another. */
export async function startService({
	port = 0,
	mediaPort = 0,
	pathPrefix: prefix = '',
	settings,
}: ServiceOptions = {}) {
	let mediaUrl = '';
	/** Ends callbacks that are under way. */
	let forgetting = new AbortController();
	/** Ends answers that are held back. */
	const closing = new AbortController();
	// Node.js warns of more than ten listeners unless it is told that many are meant.
	setMaxListeners(0, closing.signal);
	const requests: LoggedRequest[] = [];
	const model = new ServiceModel(
		{
			now: () => ofThisProcess.now(),
			later: (ms, run) => ofThisProcess.later(ms, run),
			newTaskId: () => `task-${randomUUID()}`,
			post: async (url, body) => await post(url, body, forgetting.signal),
		},
		{ settings, mediaUrl: () => mediaUrl, baseUrl: () => origin + prefix },
	);
	const { store, switches, sender } = model;

	let origin = '';
	const api = createServer('api', requests);
	api.register(async (scope) => apiRoutes(scope, model, closing.signal), { prefix });
	const media = createServer('media', requests);
	mediaRoutes(media, model, closing.signal, () => origin);
	// The same media at another origin, for results that redirect, and below the base URL.
	api.register(async (scope) => mediaRoutes(scope, model, closing.signal, () => mediaUrl, true), {
		prefix,
	});
	if (prefix !== '') mediaRoutes(api, model, closing.signal);

	const forget = () => {
		model.clear();
		forgetting.abort();
		forgetting = new AbortController();
	};

	const close = async () => {
		closing.abort();
		forget();
		await Promise.all([api.close(), media.close()]);
	};

	try {
		origin = await listen(api, port);
		mediaUrl = await listen(media, mediaPort);
	} catch (error) {
		await close();
		throw error;
	}

	return {
		/** Base address, with the path prefix. */
		url: `${origin}${prefix}`,
		mediaUrl,
		get apiKey() {
			return model.apiKey;
		},
		requests: requests as readonly LoggedRequest[],
		callbacks: sender.entries as readonly LoggedCallback[],
		tasks: store.tasks as ReadonlyMap<string, SimulatedTask>,
		/** Credits that can be spent now. */
		get balance() {
			return store.balance;
		},
		/** Merges switches into the present ones. */
		configure: (changes: Settings) => switches.configure(changes),
		/** Restores the switches given at the start. */
		resetSettings: () => switches.reset(),
		/** Creates a task as if another client of the account had. */
		createTask: (name: string, input: object, webhookUrl?: string) =>
			store.create(parseCreate({ model: name, input, webhook_url: webhookUrl })),
		rotateApiKey: (newKey: string) => {
			model.apiKey = newKey;
		},
		/** Makes a task terminal now. */
		complete: (taskId: string, outcome?: Outcome) => store.complete(taskId, outcome),
		/** Delivers a callback now, in copies at once, whether or not the task is terminal. */
		deliverCallback: async (taskId: string, { copies }: { copies: number }) => {
			const task = store.get(taskId);
			const callback = { taskId, url: task.webhookUrl ?? '', body: model.callbackBody(task) };
			await Promise.all(Array.from({ length: copies }, () => sender.deliver(callback)));
		},
		/** Fetches now what stands at the addresses in the input of a task, as its model would. */
		fetchFiles: async (taskId: string) => await fetchFiles(store.get(taskId).record.input),
		/** Forgets tasks and logs, and restores the balance; the switches stay. */
		clear: () => {
			forget();
			requests.length = 0;
		},
		close,
	};
}

/** The three endpoints of section 4 over HTTP, behind the authentication of section 5. */
function apiRoutes(app: FastifyInstance, model: ServiceModel, closing: AbortSignal): void {
	async function respond(reply: FastifyReply, { delayMs, answer }: Taken): Promise<FastifyReply> {
		return (await holdBack(delayMs, closing)) ? sendAnswer(reply, answer()) : drop(reply);
	}

	app.addHook('onRequest', async ({ headers }) => model.authenticate(headers.authorization));
	app.post('/api/generate', async ({ body }, reply) => respond(reply, model.create(body)));
	app.get<{ Params: { taskId: string } }>('/api/generate/:taskId', async ({ params }, reply) =>
		respond(reply, model.read(params.taskId)),
	);
	app.get('/api/credits', async (_request, reply) => respond(reply, model.credits()));
}

/** A server that logs what clients ask of it, in the order of arrival. */
function createServer(host: LoggedRequest['host'], requests: LoggedRequest[]): FastifyInstance {
	const app = fastify({ bodyLimit: BODY_LIMIT, forceCloseConnections: true });
	const logged = new WeakMap<FastifyRequest, LoggedRequest>();
	app.addHook('onRequest', async (request) => {
		const { method, url: path, headers } = request;
		const { authorization } = headers;
		const entry = { at: Date.now(), method, path, host, ...(authorization && { authorization }) };
		requests.push(entry);
		logged.set(request, entry);
	});
	// By the clock of the test, and not by that of the machine.
	app.addHook('onSend', async (_request, reply) => {
		reply.header('date', new Date().toUTCString());
	});
	app.addHook('onResponse', async (request, { statusCode }) => {
		const entry = logged.get(request);
		if (entry) entry.status ??= statusCode;
	});
	answerErrors(app);
	return app;
}

async function listen(app: FastifyInstance, port: number): Promise<string> {
	try {
		return await app.listen({ host: HOST, port });
	} catch (error) {
		if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error;
		throw new Error(
			`Port ${port} of ${HOST} is already in use: stop what listens there, or choose another port.`,
		);
	}
}
