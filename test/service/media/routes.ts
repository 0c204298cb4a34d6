import type { FastifyInstance } from 'fastify';
import { Readable } from 'node:stream';

import { drop, holdBack, sendAnswer, sendBadly } from '../answers';
import { answerOfRefusal, type ServiceModel } from '../model';
import { kindOf, type MediaKind } from '../prices';
import { makeResult } from './results';

/** With the first bytes by which the kind of a file is told. */
const FORMATS: Readonly<Record<MediaKind, { type: string; signature: Buffer }>> = {
	image: { type: 'image/png', signature: Buffer.from('89504e470d0a1a0a', 'hex') },
	video: { type: 'video/mp4', signature: Buffer.from('000000186674797069736f6d', 'hex') },
};

const CHUNK = Buffer.alloc(64 * 1024);

/** Bytes of any number, none of which is held in memory. */
function* bytes(signature: Buffer, length: number): Generator<Buffer> {
	const start = signature.subarray(0, length);
	if (start.length > 0) yield start;
	for (let left = length - start.length; left > 0; left -= CHUNK.length) {
		yield left >= CHUNK.length ? CHUNK : CHUNK.subarray(0, left);
	}
}

/**
 * The media that result URLs point at (section 2), open to everyone who has the address.
 * @param redirectTo the origin that `mediaRedirect` leads to, on the server that redirects
 */
export function mediaRoutes(
	app: FastifyInstance,
	{ store, switches }: ServiceModel,
	closing: AbortSignal,
	redirectTo?: () => string,
): void {
	type Params = { taskId: string; file: string };
	app.get<{ Params: Params }>('/media/:taskId/:file', async ({ params, url }, reply) => {
		const { taskId, file } = params;
		const task = store.get(taskId);
		const settings = switches.for(task.own);

		const refusal = switches.refusal('media', task.own, () => taskId);
		if (refusal) return sendAnswer(reply, answerOfRefusal(refusal));
		if (!(await holdBack(settings.mediaDelayMs, closing))) return drop(reply);
		if (settings.mediaRedirect && redirectTo) return reply.redirect(redirectTo() + url);

		const format = FORMATS[kindOf(task.record.model)];
		const { mediaType: type = format.type, mediaBytes } = settings;
		reply.type(type);
		if (mediaBytes !== undefined) {
			reply.header('content-length', mediaBytes);
			return reply.send(Readable.from(bytes(format.signature, mediaBytes)));
		}
		const body = await makeResult(task, Number.parseInt(file, 10));
		const way = switches.way('media', task.own, () => taskId);
		return way.fate ? sendBadly(reply, { ...way, type, body }) : reply.send(body);
	});
}
