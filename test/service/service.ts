import { randomUUID } from 'node:crypto';
import { once, setMaxListeners } from 'node:events';
import { createServer as createHttpServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

import { drop, holdBack, sendAnswer, sendError } from './answers';
import type { LoggedCallback } from './callbacks';
import { parseCreate } from './createRequest';
import { ofThisProcess } from './effects';
import { mediaRoutes } from './media/routes';
import { ServiceModel, type Taken } from './model';
import { fetchFiles, post } from './outgoing';
import { Routes } from './routes';
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
	const ofApi = new Routes();
	apiRoutes(ofApi, prefix, model, closing.signal);
	const ofMedia = new Routes();
	const below = { prefix, redirectTo: () => mediaUrl, isBelowBase: true };
	mediaRoutes(ofMedia, model, closing.signal, { redirectTo: () => origin });
	// The same media at another origin, for results that redirect, and below the base URL.
	mediaRoutes(ofApi, model, closing.signal, below);
	if (prefix !== '') mediaRoutes(ofApi, model, closing.signal);
	const api = createServer('api', ofApi, requests);
	const media = createServer('media', ofMedia, requests);

	const forget = () => {
		model.clear();
		forgetting.abort();
		forgetting = new AbortController();
	};

	const close = async () => {
		closing.abort();
		forget();
		await Promise.all([api, media].map(end));
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
function apiRoutes(
	routes: Routes,
	prefix: string,
	model: ServiceModel,
	closing: AbortSignal,
): void {
	async function respond(response: ServerResponse, { delayMs, answer }: Taken): Promise<void> {
		if (await holdBack(delayMs, closing)) sendAnswer(response, answer());
		else drop(response);
	}
	const add = (
		method: 'GET' | 'POST',
		path: string,
		take: (body: unknown, taskId: string) => Taken,
	) =>
		routes.add(method, prefix + path, async ({ headers, body, params }, response) => {
			model.authenticate(headers.authorization);
			await respond(response, take(body, params.taskId ?? ''));
		});

	add('POST', '/api/generate', (body) => model.create(body));
	add('GET', '/api/generate/:taskId', (_body, taskId) => model.read(taskId));
	add('GET', '/api/credits', () => model.credits());
}

/** A server that logs what clients ask of it, in the order of arrival. */
function createServer(
	host: LoggedRequest['host'],
	routes: Routes,
	requests: LoggedRequest[],
): Server {
	return createHttpServer((request, response) => {
		const { method = '', url: path = '', headers } = request;
		const { authorization } = headers;
		const at = Date.now();
		const entry: LoggedRequest = {
			at,
			method,
			path,
			host,
			...(authorization && { authorization }),
		};
		requests.push(entry);
		response.once('finish', () => (entry.status ??= response.statusCode));
		routes.answer(request, response).catch((error: unknown) => sendError(response, error));
	});
}

async function listen(server: Server, port: number): Promise<string> {
	try {
		await once(server.listen(port, HOST), 'listening');
		return `http://${HOST}:${(server.address() as AddressInfo).port}`;
	} catch (error) {
		if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error;
		throw new Error(
			`Port ${port} of ${HOST} is already in use: stop what listens there, or choose another port.`,
		);
	}
}

async function end(server: Server): Promise<void> {
	server.closeAllConnections();
	await new Promise((resolve) => server.close(resolve));
}
