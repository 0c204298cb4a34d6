import type { FastifyInstance } from 'fastify';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import type { LoggedCallback } from '../callbacks';
import type { ServiceModel } from '../model';
import { kindOf } from '../prices';
import type { SimulatedTask } from '../tasks';

/** Tasks that the page shows; a load test makes more than anyone looks at. */
const SHOWN = 60;

const FILES = [
	['/', 'index.html', 'text/html; charset=utf-8'],
	['/page/style.css', 'style.css', 'text/css; charset=utf-8'],
	['/page/script.js', 'script.js', 'text/javascript; charset=utf-8'],
	['/page/icon.svg', 'icon.svg', 'image/svg+xml'],
] as const;

/** How the deliveries of a task's callback went, for whoever wonders why a trigger does not start. */
function callbackOf({ taskId, webhookUrl }: SimulatedTask, callbacks: readonly LoggedCallback[]) {
	if (webhookUrl === undefined) return undefined;
	const deliveries = callbacks.filter((callback) => callback.taskId === taskId);
	const { status, error } = deliveries.at(-1) ?? {};
	return { host: new URL(webhookUrl).host, deliveries: deliveries.length, status, error };
}

function summary(task: SimulatedTask, callbacks: readonly LoggedCallback[]) {
	const { record, reserved } = task;
	const { taskId, state, model, input, createdAt, creditsConsumed } = record;
	return {
		taskId,
		state,
		model,
		kind: kindOf(model),
		prompt: typeof input.prompt === 'string' ? input.prompt : '',
		createdAt,
		reserved,
		creditsConsumed,
		results: record.resultUrls ?? [],
		error: record.error?.message,
		callback: callbackOf(task, callbacks),
	};
}

/** A page that shows the tasks as they come in. No part of the specification, and no key needed. */
export function pageRoutes(app: FastifyInstance, model: ServiceModel, url: () => string): void {
	const { store, switches, sender } = model;
	for (const [path, file, type] of FILES) {
		const content = readFileSync(join(__dirname, file));
		app.get(path, async (_request, reply) => reply.type(type).send(content));
	}
	app.get('/page/state', async () => ({
		url: url(),
		apiKey: model.apiKey,
		balance: store.balance,
		reserved: store.reserved,
		total: store.tasks.size,
		unfinished: store.unfinished,
		settings: switches.all,
		tasks: store.inOrder
			.slice(-SHOWN)
			.reverse()
			.map((task) => summary(task, sender.entries)),
	}));
}
