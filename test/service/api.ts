import type { FastifyInstance } from 'fastify';

import { cutShort, drop, holdBack, refuse } from './answers';
import { ServiceError } from './errors';
import type { RequestLog } from './log';
import type { Settings, Switches } from './settings';
import { type SimulatedTask, type TaskStore, parseCreate } from './tasks';

/** What the routes of the service work with. */
export interface ApiContext {
	readonly store: TaskStore;
	readonly switches: Switches;
	readonly log: RequestLog;
	readonly apiKey: () => string;
	readonly closing: AbortSignal;
}

type CreateShape = NonNullable<Settings['createShape']>;

/** Answers to a create, from the one of section 4.1 to those that a client must get along with. */
const CREATE_ANSWERS: Readonly<
	Record<CreateShape, (task: SimulatedTask, record: () => unknown) => unknown>
> = {
	flat: ({ taskId }) => ({ taskId }),
	wrapped: ({ taskId }) => ({ code: 200, message: 'success', data: { taskId } }),
	task: ({ taskId }) => ({ task: { taskId } }),
	record: (_task, record) => record(),
	snake: ({ taskId }) => ({ task_id: taskId }),
	id: ({ taskId }) => ({ id: taskId }),
	missing: () => ({}),
	array: ({ taskId }) => [taskId],
	text: () => 'accepted',
	html: () => '<!doctype html><title>Accepted</title><p>Your task was accepted.</p>',
};

const CREATE_TYPES: Partial<Record<CreateShape, string>> = {
	text: 'text/plain',
	html: 'text/html',
};

/** Puts the balance in the place of `$balance`, at any depth. */
function withBalance(shape: unknown, balance: number): unknown {
	if (shape === '$balance') return balance;
	if (Array.isArray(shape)) return shape.map((item) => withBalance(item, balance));
	if (typeof shape !== 'object' || shape === null) return shape;
	return Object.fromEntries(
		Object.entries(shape).map(([name, value]) => [name, withBalance(value, balance)]),
	);
}

/** The three endpoints of section 4 behind the authentication of section 5. */
export function apiRoutes(app: FastifyInstance, context: ApiContext): void {
	const { store, switches, log, apiKey, closing } = context;

	app.addHook('onRequest', (request, _reply, done) => {
		if (request.headers.authorization === `Bearer ${apiKey()}`) return done();
		const message = 'The API key is missing or wrong: send "Authorization: Bearer <API_KEY>".';
		return done(new ServiceError(401, 'unauthorized', message, { 'www-authenticate': 'Bearer' }));
	});

	app.post('/api/generate', async (request, reply) => {
		const wanted = parseCreate(request.body);
		const { own } = wanted;
		// A client that tries again sends the same body: it is what tells one create from another.
		const scope = () => JSON.stringify(request.body);
		const refusal = switches.refusal('createStatus', own, scope);
		if (refusal) return refuse(reply, refusal);

		const task = store.create(wanted);
		log.concerns(request, task.taskId);
		const { createDelayMs, createShape = 'flat' } = switches.for(own);
		const open = await holdBack(createDelayMs, closing);
		if (!open || switches.accident('createLost', own, scope)) return drop(reply);
		return reply
			.type(CREATE_TYPES[createShape] ?? 'application/json')
			.send(CREATE_ANSWERS[createShape](task, () => store.present(task)));
	});

	app.get<{ Params: { taskId: string } }>('/api/generate/:taskId', async (request, reply) => {
		const { taskId } = request.params;
		log.concerns(request, taskId);
		const task = store.tasks.get(taskId);
		const own = task?.own;
		const scope = () => taskId;
		const refusal = switches.refusal('readStatus', own, scope);
		if (refusal) return refuse(reply, refusal);

		const open = await holdBack(switches.for(own).readDelayMs, closing);
		if (!open || switches.accident('readDropped', own, scope)) return drop(reply);
		const known = store.get(taskId);
		known.reads++;
		const record = store.present(known);
		if (!switches.accident('readCutShort', own, scope)) return reply.send(record);
		const body = Buffer.from(JSON.stringify(record));
		const half = body.subarray(0, Math.floor(body.length / 2));
		return cutShort(reply, 'application/json', half, body.length);
	});

	app.get('/api/credits', async (_request, reply) => {
		const refusal = switches.refusal('creditsStatus');
		if (refusal) return refuse(reply, refusal);
		const { balance, reserved } = store;
		const { creditsShape = { balance: '$balance', reserved } } = switches.all;
		return reply.type('application/json').send(JSON.stringify(withBalance(creditsShape, balance)));
	});
}
