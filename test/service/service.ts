import { type FastifyInstance, fastify } from 'fastify';
import { randomUUID } from 'node:crypto';
import { setMaxListeners } from 'node:events';
import type { AddressInfo } from 'node:net';

import { answerErrors } from './answers';
import { apiRoutes } from './api';
import type { LoggedCallback } from './callbacks';
import { controlRoutes } from './control';
import { parseCreate } from './createRequest';
import { ofThisProcess } from './effects';
import { type FetchedFile, fetchFiles } from './files';
import { type LoggedRequest, RequestLog } from './log';
import { Results } from './media/results';
import { mediaRoutes } from './media/routes';
import { Studio } from './media/studio';
import { ServiceModel } from './model';
import { post } from './post';
import type { Outcome, Settings } from './settings';
import type { SimulatedTask } from './tasks';

export type { LoggedCallback } from './callbacks';
export type { FetchedFile } from './files';
export type { LoggedRequest } from './log';
export type { Outcome, Refusal, Settings } from './settings';
export type { SimulatedTask, TaskRecord } from './tasks';

const HOST = '127.0.0.1';
/** Reference images travel inside the input as data URIs. */
const BODY_LIMIT = 64 * 1024 * 1024;

export interface ServiceOptions {
	/** Port of the API; 0, the default, takes any. */
	port?: number;
	/** Port of the media; 0, the default, takes any. */
	mediaPort?: number;
	apiKey?: string;
	/** A path in front of `/api`, such as `/v1`. */
	pathPrefix?: string;
	credits?: number;
	settings?: Settings;
}

/** The running service: its addresses, what happened so far, and the means to steer it. */
export interface SimulatedService {
	/** Base address, with the path prefix. */
	readonly url: string;
	readonly mediaUrl: string;
	readonly apiKey: string;
	readonly requests: readonly LoggedRequest[];
	readonly callbacks: readonly LoggedCallback[];
	readonly tasks: ReadonlyMap<string, SimulatedTask>;
	/** Credits that can be spent now. */
	readonly balance: number;
	/** Merges switches into the present ones. */
	configure(settings: Partial<Settings>): void;
	/** Restores the switches given at the start. */
	resetSettings(): void;
	/** Creates a task as if another client of the account had. */
	createTask(model: string, input: object, webhookUrl?: string): SimulatedTask;
	rotateApiKey(newKey: string): void;
	/** Makes a task terminal now. */
	complete(taskId: string, outcome?: Outcome): void;
	/** Delivers a callback now, once or in copies at once, whether or not the task is terminal. */
	deliverCallback(
		taskId: string,
		options?: { url?: string; body?: unknown; copies?: number },
	): Promise<LoggedCallback[]>;
	/** Fetches now what stands at the addresses in the input of a task, as its model would. */
	fetchFiles(taskId: string): Promise<FetchedFile[]>;
	/** Forgets tasks and logs, and restores the balance; the switches stay. */
	clear(): void;
	close(): Promise<void>;
}

/** Node.js warns of more than ten listeners unless it is told that many are meant. */
function manyHear(): AbortController {
	const controller = new AbortController();
	setMaxListeners(0, controller.signal);
	return controller;
}

/** Starts the service of the specification on loopback: the API on one port, the media on another. */
export async function startService(options: ServiceOptions = {}): Promise<SimulatedService> {
	let mediaUrl = '';
	/** Ends callbacks that are under way. */
	let forgetting = manyHear();
	/** Ends answers that are held back. */
	const closing = manyHear();
	const log = new RequestLog();
	const model = new ServiceModel(
		{
			...ofThisProcess,
			newTaskId: () => `task-${randomUUID()}`,
			post: async (url, body) => await post(url, body, forgetting.signal),
		},
		{ ...options, mediaUrl: () => mediaUrl },
	);
	const { store, switches, sender } = model;

	const studio = new Studio();
	const results = new Results(studio, store);

	const prefix = normalisePrefix(options.pathPrefix);
	const api = createServer(log, 'api');
	api.register(async (scope) => apiRoutes(scope, model, log, closing.signal), { prefix });
	controlRoutes(api, switches);
	const media = createServer(log, 'media');
	const mediaContext = { store, results, switches, log, closing: closing.signal };
	let origin = '';
	mediaRoutes(media, mediaContext, () => origin);
	// The same media at another origin, for results that redirect.
	mediaRoutes(api, mediaContext);

	const forget = () => {
		model.clear();
		forgetting.abort();
		forgetting = manyHear();
	};

	const close = async () => {
		closing.abort();
		forget();
		await Promise.all([api.close(), media.close(), studio.close()]);
	};

	try {
		origin = await listen(api, options.port ?? 0);
		mediaUrl = await listen(media, options.mediaPort ?? 0);
	} catch (error) {
		await close();
		throw error;
	}

	return {
		url: `${origin}${prefix}`,
		mediaUrl,
		get apiKey() {
			return model.apiKey;
		},
		requests: log.entries,
		callbacks: sender.entries,
		tasks: store.tasks,
		get balance() {
			return store.balance;
		},
		configure: (settings) => switches.configure(settings),
		resetSettings: () => switches.reset(),
		createTask: (model, input, webhookUrl) =>
			store.create(parseCreate({ model, input, webhook_url: webhookUrl })),
		rotateApiKey: (newKey) => {
			model.apiKey = newKey;
		},
		complete: (taskId, outcome) => store.complete(taskId, outcome),
		deliverCallback: async (taskId, { url, body, copies = 1 } = {}) => {
			const address = url ?? store.get(taskId).webhookUrl;
			if (!address) throw new Error(`${taskId} was created without a webhook_url; give one.`);
			const content = body === undefined ? model.callbackBody(store.get(taskId)) : body;
			const callback = { taskId, url: address, body: content };
			return await Promise.all(Array.from({ length: copies }, () => sender.deliver(callback)));
		},
		fetchFiles: async (taskId) => await fetchFiles(store.get(taskId).record.input),
		clear: () => {
			forget();
			studio.clear();
			log.entries.length = 0;
		},
		close,
	};
}

function createServer(log: RequestLog, host: LoggedRequest['host']): FastifyInstance {
	const app = fastify({ bodyLimit: BODY_LIMIT, forceCloseConnections: true });
	// By the clock of the test, and not by that of the machine.
	app.addHook('onSend', async (_request, reply) => {
		reply.header('date', new Date().toUTCString());
	});
	answerErrors(app);
	log.watch(app, host);
	return app;
}

async function listen(app: FastifyInstance, port: number): Promise<string> {
	try {
		await app.listen({ host: HOST, port });
	} catch (error) {
		if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error;
		throw new Error(
			`Port ${port} of ${HOST} is already in use: stop what listens there, or choose another port.`,
		);
	}
	return `http://${HOST}:${(app.server.address() as AddressInfo).port}`;
}

function normalisePrefix(prefix = ''): string {
	const bare = prefix.replace(/^\/+|\/+$/g, '');
	return bare ? `/${bare}` : '';
}
