import type { FastifyInstance } from 'fastify';
import { Readable } from 'node:stream';

import { drop, holdBack, sendAnswer, sendHalf } from '../answers';
import { answerOfRefusal, type ServiceModel } from '../model';
import { kindOf, type MediaKind } from '../prices';
import { makeResult } from './results';

/** With the first bytes by which the kind of a file is told. */
const FORMATS: Readonly<Record<MediaKind, { type: string; signature: Buffer }>> = {
	image: { type: 'image/png', signature: Buffer.from('89504e470d0a1a0a', 'hex') },
	video: { type: 'video/mp4', signature: Buffer.from('000000186674797069736f6d', 'hex') },
};

const CHUNK = Buffer.alloc(64 * 1024);

const PAGE = '<!doctype html><title>Not ready</title><p>Please come back in a few minutes.</p>';

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

		const refusal = switches.refusal('mediaStatus', task.own, () => taskId);
		if (refusal) return sendAnswer(reply, answerOfRefusal(refusal));
		if (!(await holdBack(settings.mediaDelayMs, closing))) return drop(reply);
		if (settings.mediaRedirect && redirectTo) return reply.redirect(redirectTo() + url);
		if (settings.mediaHtml) return reply.type('text/html; charset=utf-8').send(PAGE);

		const format = FORMATS[kindOf(task.record.model)];
		const { mediaType: type = format.type, mediaBytes, mediaTruncated, mediaStalls } = settings;
		reply.type(type);
		if (settings.mediaEmpty) return reply.send(Buffer.alloc(0));
		if (mediaBytes !== undefined) {
			reply.header('content-length', mediaBytes);
			return reply.send(Readable.from(bytes(format.signature, mediaBytes)));
		}
		const content = await makeResult(task, Number.parseInt(file, 10));
		if (!mediaTruncated && !mediaStalls) return reply.send(content);
		return sendHalf(reply, type, content, mediaStalls);
	});
}
