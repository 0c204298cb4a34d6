import type { FastifyError, FastifyInstance, FastifyReply } from 'fastify';
import type { Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';

import { ServiceError } from './errors';
import { type Answer, answerOfError } from './model';
import { type Fate, type Milliseconds, draw } from './settings';

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
	const { status, headers, type, body } = answer;
	if (answer.fate) return sendBadly(reply.code(status).headers(headers), answer);
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

/** The pause between two bytes, milliseconds. */
const TRICKLE_MS = 1_000;

interface Whole {
	type: string;
	body: string | Buffer;
	fate?: Fate;
	everyMs?: number;
}

/** Gives an answer that its way does harm to. Its status and headers are those of the reply. */
export function sendBadly(reply: FastifyReply, whole: Whole): FastifyReply {
	const { type, fate, everyMs = TRICKLE_MS } = whole;
	const body = Buffer.from(whole.body);
	if (fate === 'lost') return drop(reply);
	reply.header('content-type', type).header('content-length', body.length);
	reply.hijack();
	const { raw, statusCode } = reply;
	const head = Object.entries(reply.getHeaders()).map(([name, value]) => `${name}: ${value}\r\n`);
	const begin = Buffer.from(`HTTP/1.1 ${statusCode} \r\n${head.join('')}connection: close\r\n\r\n`);
	const socket = raw.socket as Socket;
	const isHalf = fate === 'cut short' || fate === 'stalls';
	const atOnce = isHalf ? body.subarray(0, body.length / 2) : Buffer.alloc(0);
	const slowly = isHalf ? Buffer.alloc(0) : body;
	const isSlowHead = fate === 'trickles from its head';
	socket.write(isSlowHead ? '' : Buffer.concat([begin, atOnce]), () => {
		if (fate === 'cut short') raw.destroy();
		else if (!isHalf)
			void trickle(socket, isSlowHead ? Buffer.concat([begin, slowly]) : slowly, everyMs);
	});
	return reply;
}

/** Sends a byte at a time, until all are sent or nobody listens. */
async function trickle(socket: Socket, bytes: Buffer, everyMs: number): Promise<void> {
	for (let sent = 0; sent < bytes.length && !socket.destroyed; sent++) {
		socket.write(bytes.subarray(sent, sent + 1));
		await pause(everyMs, undefined, { ref: false });
	}
	socket.end();
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
