import type { FastifyError, FastifyInstance, FastifyReply } from 'fastify';
import { setTimeout as pause } from 'node:timers/promises';

import { ServiceError } from './errors';
import type { Answer } from './model';
import { type Milliseconds, draw } from './settings';

/** Answers every error of a server, its own and fastify's, in one shape. */
export function answerErrors(app: FastifyInstance): void {
	app.setErrorHandler((error: FastifyError | ServiceError, _request, reply) => {
		if (error instanceof ServiceError) {
			return reply.code(error.status).headers(error.headers).send(error.body);
		}
		const status = error.statusCode ?? 500;
		return reply.code(status).send(new ServiceError(status, error.code, error.message).body);
	});
	app.setNotFoundHandler((request, reply) => {
		const message = `There is nothing at ${request.method} ${request.url}.`;
		return reply.code(404).send(new ServiceError(404, 'not_found', message).body);
	});
}

/** Gives an answer of the model, or what its way leaves of it. */
export function sendAnswer(reply: FastifyReply, answer: Answer): FastifyReply {
	const { status, headers, type, body, fate } = answer;
	if (fate === 'dropped') return drop(reply);
	if (fate === 'cut short') {
		const whole = Buffer.from(body);
		return cutShort(reply, type, whole.subarray(0, Math.floor(whole.length / 2)), whole.length);
	}
	return reply
		.code(status)
		.headers(headers)
		.type(type)
		.serializer((payload: unknown) => String(payload))
		.send(body);
}

/** Ends the connection without an answer. */
export function drop(reply: FastifyReply): FastifyReply {
	reply.hijack();
	reply.raw.destroy();
	return reply;
}

/** Announces `length` bytes, sends fewer, and ends the connection. */
export function cutShort(
	reply: FastifyReply,
	type: string,
	body: Buffer,
	length: number,
): FastifyReply {
	reply.hijack();
	reply.raw.writeHead(200, { 'content-type': type, 'content-length': length });
	reply.raw.write(body, () => reply.raw.destroy());
	return reply;
}

/** Announces `length` bytes, sends fewer, and leaves the connection open until the service closes. */
export function stall(
	reply: FastifyReply,
	type: string,
	body: Buffer,
	length: number,
	closing: AbortSignal,
): FastifyReply {
	reply.hijack();
	reply.raw.writeHead(200, { 'content-type': type, 'content-length': length });
	reply.raw.write(body);
	closing.addEventListener('abort', () => reply.raw.destroy(), { once: true });
	return reply;
}

/** Holds an answer back; false where the service closed meanwhile, so that none is to be given. */
export async function holdBack(
	value: Milliseconds | undefined,
	closing: AbortSignal,
): Promise<boolean> {
	const delay = draw(value, 0);
	if (delay > 0) await pause(delay, undefined, { signal: closing }).catch(() => {});
	return !closing.aborted;
}
