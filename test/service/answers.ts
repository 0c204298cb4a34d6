import type { FastifyError, FastifyInstance, FastifyReply } from 'fastify';
import { setTimeout as pause } from 'node:timers/promises';

import { ServiceError } from './errors';
import { type Answer, answerOfError } from './model';
import { type Milliseconds, draw } from './settings';

/** Answers the errors of a server's routes, its own and fastify's, in one shape. */
export function answerErrors(app: FastifyInstance): void {
	app.setErrorHandler((error: FastifyError | ServiceError, _request, reply) => {
		const { statusCode: status = 500, code, message } = error as FastifyError;
		const known = error instanceof ServiceError ? error : new ServiceError(status, code, message);
		return sendAnswer(reply, answerOfError(known));
	});
}

/** Gives an answer of the model, or what its way leaves of it. */
export function sendAnswer(reply: FastifyReply, answer: Answer): FastifyReply {
	const { status, headers, type, body, fate } = answer;
	if (fate === 'dropped') return drop(reply);
	if (fate === 'cut short') return sendHalf(reply, type, Buffer.from(body));
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

/** Announces a whole body, sends half of it, and ends the connection, unless it stays open for ever. */
export function sendHalf(reply: FastifyReply, type: string, whole: Buffer, staysOpen = false) {
	const { raw } = reply.hijack();
	raw.writeHead(200, { 'content-type': type, 'content-length': whole.length });
	raw.write(whole.subarray(0, Math.floor(whole.length / 2)), () => staysOpen || raw.destroy());
	return reply;
}

/** Holds an answer back; false where the service closed meanwhile, so that none is to be given. */
export async function holdBack(
	value: Milliseconds | undefined,
	closing: AbortSignal,
): Promise<boolean> {
	const delay = draw(value);
	if (delay > 0) await pause(delay, undefined, { signal: closing }).catch(() => {});
	return !closing.aborted;
}
