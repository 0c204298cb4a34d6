import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';

import { settled } from '../../../nodes/MediaGeneration/shared/clock';
import { drop, holdBack, send, sendAnswer, sendBadly } from '../answers';
import { ServiceError } from '../errors';
import { answerOfRefusal, type ServiceModel } from '../model';
import { kindOf, type MediaKind } from '../prices';
import type { Routes } from '../routes';
import { makeResult } from './results';

/** With the first bytes by which the kind of a file is told. */
const FORMATS: Readonly<Record<MediaKind, { type: string; signature: Buffer }>> = {
	image: { type: 'image/png', signature: Buffer.from('89504e470d0a1a0a', 'hex') },
	video: { type: 'video/mp4', signature: Buffer.from('000000186674797069736f6d', 'hex') },
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

interface Place {
	/** Before the path. */
	prefix?: string;
	/** The origin that `mediaRedirect` leads to, on the server that redirects. */
	redirectTo?: () => string;
	/** Whether these are the media below the base URL. */
	isBelowBase?: boolean;
}

/** The media that result URLs point at (section 2), open to everyone who has the address. */
export function mediaRoutes(
	routes: Routes,
	model: ServiceModel,
	closing: AbortSignal,
	{ prefix = '', redirectTo, isBelowBase = false }: Place = {},
): void {
	const { store, switches } = model;
	routes.add(
		'GET',
		`${prefix}/media/:taskId/:file`,
		async ({ params, query, headers }, response) => {
			const { taskId = '', file = '' } = params;
			const task = store.get(taskId);
			const settings = switches.for(task.own);
			if (isBelowBase && settings.mediaNeedsKey) model.authenticate(headers.authorization);
			// What a storage says to whoever sends a key that it does not know.
			if (!isBelowBase && headers.authorization !== undefined) {
				throw new ServiceError(400, 'invalid_argument', 'Only one way to authenticate is allowed.');
			}
			if (Date.now() > Number(query.get('ends') ?? Infinity)) {
				throw new ServiceError(403, 'expired', 'Request has expired.');
			}

			const refusal = switches.refusal('media', task.own, () => taskId);
			if (refusal) return sendAnswer(response, answerOfRefusal(refusal));
			if (!(await holdBack(settings.mediaDelayMs, closing))) return drop(response);
			const isRedirected =
				settings.mediaRedirect && isBelowBase === (settings.mediaBelowBase ?? false);
			if (isRedirected && redirectTo) {
				response.writeHead(302, { location: `${redirectTo()}/media/${taskId}/${file}` }).end();
				return;
			}

			const format = FORMATS[kindOf(task.record.model)];
			const { mediaType: type = format.type, mediaBytes: length } = settings;
			if (length !== undefined) {
				response.writeHead(200, { 'content-type': type, 'content-length': length });
				// Whoever asked may hang up.
				await settled(pipeline(Readable.from(bytes(format.signature, length)), response));
				return;
			}
			const body = await makeResult(task, Number.parseInt(file, 10));
			const way = switches.way('media', task.own, () => taskId);
			if (way.fate) sendBadly(response, { ...way, type, body });
			else send(response, type, body);
		},
	);
}
