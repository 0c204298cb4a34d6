import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { Readable } from 'node:stream';

import { cutShort, drop, holdBack, sendAnswer, stall } from '../answers';
import { ServiceError } from '../errors';
import type { RequestLog } from '../log';
import { answerOfRefusal } from '../model';
import { kindOf, type MediaKind } from '../prices';
import type { Switches } from '../switches';
import type { TaskStore } from '../tasks';
import type { Results } from './results';

export interface MediaContext {
	readonly store: TaskStore;
	readonly results: Results;
	readonly switches: Switches;
	readonly log: RequestLog;
	/** Aborted when the service closes. */
	readonly closing: AbortSignal;
}

const TYPES: Readonly<Record<MediaKind, string>> = { image: 'image/png', video: 'video/mp4' };

/** The first bytes by which the kind of a file is told. */
const SIGNATURES: Readonly<Record<MediaKind, Buffer>> = {
	image: Buffer.from('89504e470d0a1a0a', 'hex'),
	video: Buffer.from('000000186674797069736f6d', 'hex'),
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

/** Answers with a file, or with the part of it that a player asks for. */
function sendFile(request: FastifyRequest, reply: FastifyReply, file: Buffer): FastifyReply {
	reply.header('accept-ranges', 'bytes');
	const [, first, last] = /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? '') ?? [];
	if (first === undefined) return reply.send(file);
	const start = Number(first);
	const end = Math.min(last ? Number(last) : Infinity, file.length - 1);
	if (start > end) {
		return reply.code(416).header('content-range', `bytes */${file.length}`).send();
	}
	return reply
		.code(206)
		.header('content-range', `bytes ${start}-${end}/${file.length}`)
		.send(file.subarray(start, end + 1));
}

/**
 * The media that result URLs point at (section 2), open to everyone who has the address.
 * @param redirectTo the origin that `mediaRedirect` leads to, on the server that redirects
 */
export function mediaRoutes(
	app: FastifyInstance,
	{ store, results, switches, log, closing }: MediaContext,
	redirectTo?: () => string,
): void {
	type Params = { taskId: string; file: string };
	app.get<{ Params: Params }>('/media/:taskId/:file', async (request, reply) => {
		const { taskId, file } = request.params;
		log.concerns(request, taskId);
		const task = store.get(taskId);
		const number = Number.parseInt(file, 10);
		if (!results.has(task, number)) {
			throw new ServiceError(404, 'not_found', `The task ${taskId} has no result ${file}.`);
		}
		const settings = switches.for(task.own);
		const kind = kindOf(task.record.model);

		const refusal = switches.refusal('mediaStatus', task.own, () => taskId);
		if (refusal) return sendAnswer(reply, answerOfRefusal(refusal));
		if (!(await holdBack(settings.mediaDelayMs, closing))) return drop(reply);
		if (settings.mediaRedirect && redirectTo) {
			const { mediaRedirect } = settings;
			return reply.redirect(
				typeof mediaRedirect === 'string' ? mediaRedirect : `${redirectTo()}${request.url}`,
			);
		}
		if (settings.mediaHtml) return reply.type('text/html; charset=utf-8').send(PAGE);

		const type = settings.mediaType ?? TYPES[kind];
		reply.type(type);
		if (settings.mediaEmpty) return reply.send(Buffer.alloc(0));
		if (settings.mediaBytes !== undefined) {
			reply.header('content-length', settings.mediaBytes);
			return reply.send(Readable.from(bytes(SIGNATURES[kind], settings.mediaBytes)));
		}
		const content = await results.file(task, number);
		const half = content.subarray(0, Math.floor(content.length / 2));
		if (settings.mediaStalls) return stall(reply, type, half, content.length, closing);
		if (!settings.mediaTruncated) return sendFile(request, reply, content);
		return cutShort(reply, type, half, content.length);
	});
}
