import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';

import { drop, holdBack, sendAnswer } from './answers';
import type { RequestLog } from './log';
import type { ServiceModel, Taken } from './model';

/** The three endpoints of section 4 over HTTP, behind the authentication of section 5. */
export function apiRoutes(
	app: FastifyInstance,
	model: ServiceModel,
	log: RequestLog,
	closing: AbortSignal,
): void {
	async function respond(
		request: FastifyRequest,
		reply: FastifyReply,
		{ taskId, delayMs, answer }: Taken,
	): Promise<FastifyReply> {
		if (taskId !== undefined) log.concerns(request, taskId);
		const isOpen = await holdBack(delayMs, closing);
		return isOpen ? sendAnswer(reply, answer()) : drop(reply);
	}

	app.addHook('onRequest', async ({ headers }) => model.authenticate(headers.authorization));
	app.post('/api/generate', async (request, reply) =>
		respond(request, reply, model.create(request.body)),
	);
	app.get<{ Params: { taskId: string } }>('/api/generate/:taskId', async (request, reply) =>
		respond(request, reply, model.read(request.params.taskId)),
	);
	app.get('/api/credits', async (request, reply) => respond(request, reply, model.credits()));
}
