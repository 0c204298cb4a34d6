import { fastify } from 'fastify';

import { HOST } from '../../test/n8n/ports';

/** What the node downloads at the end: it looks at the type only. */
const VIDEO = Buffer.alloc(64 * 1024, 1);

/**
 * A stand-in for the part of OpenAI's interface that n8n's video node uses: create, read, download. How long a video
 * takes stands in its prompt as `latency=<milliseconds>`.
 *
 * @returns the base URL for n8n's credential
 */
export async function openAiStandIn() {
	const app = fastify({ forceCloseConnections: true });
	app.addContentTypeParser('multipart/form-data', { parseAs: 'string' }, (_request, body, done) =>
		done(null, body),
	);
	const readyAt: number[] = [];
	app.post('/v1/videos', async ({ body }) => {
		const latency = Number(/latency=(\d+)/.exec(String(body))?.[1]);
		const id = `video_${readyAt.push(Date.now() + latency) - 1}`;
		return { id, object: 'video', status: 'queued', error: null };
	});
	app.get<{ Params: { nth: number } }>('/v1/videos/video_:nth', async ({ params: { nth } }) => {
		const status = Date.now() >= (readyAt[nth] ?? Infinity) ? 'completed' : 'in_progress';
		return { id: `video_${nth}`, object: 'video', status, error: null };
	});
	app.get('/v1/videos/video_:nth/content', async (_request, reply) =>
		reply.type('video/mp4').send(VIDEO),
	);
	const origin = await app.listen({ host: HOST, port: 0 });
	return { url: `${origin}/v1`, close: async () => await app.close() };
}
