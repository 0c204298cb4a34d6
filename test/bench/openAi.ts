import { fastify } from 'fastify';
import type { AddressInfo } from 'node:net';

import { HOST } from '../n8n/ports';

/** What the node downloads at the end: it looks at the type only. */
const VIDEO = Buffer.alloc(64 * 1024, 1);

/**
 * A stand-in for the part of OpenAI's interface that n8n's video node uses: create, read, download. How long a video
 * takes stands in its prompt as `latency=<milliseconds>`.
 */
export class OpenAiStandIn {
	private constructor(
		/** The base URL for n8n's credential. */
		readonly url: string,
		readonly close: () => Promise<void>,
	) {}

	static async open(): Promise<OpenAiStandIn> {
		const app = fastify({ forceCloseConnections: true });
		app.addContentTypeParser('multipart/form-data', { parseAs: 'string' }, (_request, body, done) =>
			done(null, body),
		);
		const readyAt = new Map<string, number>();
		app.post('/v1/videos', (request, reply) => {
			const latency = /latency=(\d+)/.exec(String(request.body))?.[1];
			const id = `video_${readyAt.size}`;
			readyAt.set(id, Date.now() + Number(latency));
			void reply.send({ id, object: 'video', status: 'queued', error: null });
		});
		app.get<{ Params: { id: string } }>('/v1/videos/:id', ({ params: { id } }, reply) => {
			const isReady = Date.now() >= (readyAt.get(id) ?? Infinity);
			const status = isReady ? 'completed' : 'in_progress';
			void reply.send({ id, object: 'video', status, error: null });
		});
		app.get('/v1/videos/:id/content', (_request, reply) => {
			void reply.type('video/mp4').send(VIDEO);
		});
		await app.listen({ host: HOST, port: 0 });
		const { port } = app.server.address() as AddressInfo;
		return new OpenAiStandIn(`http://${HOST}:${port}/v1`, async () => await app.close());
	}
}
