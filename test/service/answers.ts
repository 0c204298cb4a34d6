import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';

import { messageOf } from '../../nodes/MediaGeneration/shared/itemError';
import { ServiceError } from './errors';
import { type Answer, answerOfError } from './model';
import { type Fate, type Milliseconds, draw } from './settings';

/** Answers an error of a server's routes. */
export function sendError(response: ServerResponse, error: unknown): void {
	const isKnown = error instanceof ServiceError;
	const known = isKnown ? error : new ServiceError(500, 'internal', messageOf(error));
	if (!response.headersSent) sendAnswer(response, answerOfError(known));
}

/** Gives an answer of the model, or what its way leaves of it. */
export function sendAnswer(response: ServerResponse, answer: Answer): void {
	const { status, headers, type, body, fate } = answer;
	response.statusCode = status;
	for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
	if (fate) return sendBadly(response, answer);
	send(response, type, body);
}

/** Gives a whole answer. Its date is that of the test, and not that of the machine. */
export function send(response: ServerResponse, type: string, body: string | Buffer): void {
	response.setHeader('date', new Date().toUTCString());
	response.setHeader('content-type', type);
	response.setHeader('content-length', Buffer.byteLength(body));
	response.end(body);
}

/** Ends the connection without an answer. */
export function drop(response: ServerResponse): void {
	response.destroy();
}

/** The pause between two bytes, milliseconds. */
const TRICKLE_MS = 1_000;

interface Whole {
	type: string;
	body: string | Buffer;
	fate?: Fate;
	everyMs?: number;
}

/** Gives an answer that its way does harm to. Its status and headers are those of the response. */
export function sendBadly(response: ServerResponse, whole: Whole): void {
	const { type, fate, everyMs = TRICKLE_MS } = whole;
	const body = Buffer.from(whole.body);
	if (fate === 'lost') return drop(response);
	const { statusCode } = response;
	const headers = { ...response.getHeaders(), 'content-type': type, 'content-length': body.length };
	const head = Object.entries(headers).map(([name, value]) => `${name}: ${String(value)}\r\n`);
	const begin = Buffer.from(`HTTP/1.1 ${statusCode} \r\n${head.join('')}connection: close\r\n\r\n`);
	const socket = response.socket as Socket;
	if (fate === 'cut short') {
		socket.write(Buffer.concat([begin, body.subarray(0, body.length / 2)]), () => drop(response));
	} else if (fate === 'trickles from its head') {
		void trickle(socket, Buffer.concat([begin, body]), everyMs);
	} else socket.write(begin, () => void trickle(socket, body, everyMs));
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
