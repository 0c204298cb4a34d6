import type { FastifyInstance } from 'fastify';
import { Readable } from 'node:stream';

import { drop, holdBack, sendAnswer, sendBadly } from '../answers';
import { ServiceError } from '../errors';
import { answerOfRefusal, type ServiceModel } from '../model';
import { kindOf, type MediaKind } from '../prices';
import { makeResult } from './results';

/** With the first bytes by which the kind of a file is told. */
const FORMATS: Readonly<Record<MediaKind, { type: string; signature: Buffer }>> = {
	image: { type: 'image/png', signature: Buffer.from('89504e470d0a1a0a', 'hex') },
	video: { type: 'video/mp4', signature: Buffer.from('000000186674797069736f6d', 'hex') },
};

/** How other files begin. */
const BEGINNINGS = {
	png: '89504e470d0a1a0a',
	jpeg: 'ffd8ffe000104a46494600010100',
	webp: '524946461a000000574542505650384c',
	mp4: '000000186674797069736f6d00000200',
	webm: '1a45dfa39f4286810142f7810142f281',
};

const CHUNK_BYTES = 64 * 1024;

/** Bytes of any number, none of which is held in memory. Each part has its own, so that none can take another's place. */
function* bytes(signature: Buffer, length: number): Generator<Buffer> {
	const start = signature.subarray(0, length);
	if (start.length > 0) yield start;
	for (let left = length - start.length; left > 0; left -= CHUNK_BYTES) {
		const chunk = Buffer.alloc(Math.min(left, CHUNK_BYTES), left % 251);
		if (chunk.length >= 4) chunk.writeUInt32BE(left % 2 ** 32);
		yield chunk;
	}
}

/**
 * The media that result URLs point at (section 2), open to everyone who has the address.
 * @param redirectTo the origin that `mediaRedirect` leads to, on the server that redirects
 * @param isBelowBase whether these are the media below the base URL
 */
export function mediaRoutes(
	app: FastifyInstance,
	model: ServiceModel,
	closing: AbortSignal,
	redirectTo?: () => string,
	isBelowBase = false,
): void {
	const { store, switches } = model;
	type Params = { taskId: string; file: string };
	type Request = { Params: Params; Querystring: { ends?: string } };
	app.get<Request>('/media/:taskId/:file', async ({ params, query, headers }, reply) => {
		const { taskId, file } = params;
		const task = store.get(taskId);
		const settings = switches.for(task.own);
		if (isBelowBase && settings.mediaNeedsKey) model.authenticate(headers.authorization);
		// What a storage says to whoever sends a key that it does not know.
		if (!isBelowBase && headers.authorization !== undefined) {
			throw new ServiceError(400, 'invalid_argument', 'Only one way to authenticate is allowed.');
		}
		if (Date.now() > Number(query.ends ?? Infinity)) {
			throw new ServiceError(403, 'expired', 'Request has expired.');
		}

		const refusal = switches.refusal('media', task.own, () => taskId);
		if (refusal) return sendAnswer(reply, answerOfRefusal(refusal));
		if (!(await holdBack(settings.mediaDelayMs, closing))) return drop(reply);
		const isRedirected =
			settings.mediaRedirect && isBelowBase === (settings.mediaBelowBase ?? false);
		if (isRedirected && redirectTo)
			return reply.redirect(`${redirectTo()}/media/${taskId}/${file}`);

		const format = FORMATS[kindOf(task.record.model)];
		const { mediaType: type = format.type, mediaBytes, mediaFormat } = settings;
		const signature = mediaFormat ? Buffer.from(BEGINNINGS[mediaFormat], 'hex') : format.signature;
		reply.type(type);
		if (mediaBytes !== undefined || mediaFormat) {
			const length = mediaBytes ?? 5000;
			reply.header('content-length', length);
			return reply.send(Readable.from(bytes(signature, length)));
		}
		const body = await makeResult(task, Number.parseInt(file, 10));
		const way = switches.way('media', task.own, () => taskId);
		return way.fate ? sendBadly(reply, { ...way, type, body }) : reply.send(body);
	});
}
