import type { IDataObject } from 'n8n-workflow';

/** A service as its own pages describe it, for one model. Nothing here is taken from the table of the product. */
export interface Published {
	/** The value of the credential's field *Service*. */
	service: string;
	base: string;
	model: string;
	/** The header of the key, and what stands before the key; a bearer token if left out. */
	auth?: [header: string, before: string];
	create: string;
	/** What an order of the prompt says, without a callback address. */
	order: (prompt: string) => IDataObject;
	/** Where an order has the callback address: a query parameter (`?name`) or a field; none if the service has none. */
	callback?: string;
	/** The body of a callback, if it is not the record. */
	callbackBody?: (id: string) => IDataObject;
	created: (id: string) => IDataObject;
	read: (id: string) => string;
	/** The id that the node's output has, if it is not the service's own. */
	shownId?: (id: string) => string;
	pending: (id: string) => IDataObject;
	done: (id: string, url: string) => IDataObject;
	failed: (id: string) => IDataObject;
	/** The words of the failure. */
	reason: string;
	/** The answer of a second path for the result. */
	result?: {
		path: (id: string) => string;
		done: (url: string) => IDataObject;
		failed: IDataObject;
	};
	/** The path of the file, if the record has no link. */
	file?: (id: string) => string;
	/** The path that tells a wrong key, what it answers, and the balance in it. */
	balance: { path: string; status?: number; answer: IDataObject; value: number | null };
}

/** The envelopes of kie and of WaveSpeed. */
const ofKie = (data: IDataObject | number) => ({ code: 200, msg: 'success', data });
const ofWaveSpeed = (data: IDataObject | number) => ({ code: 200, message: 'success', data });
const UUID = '00000000-0000-0000-0000-000000000000';

export const PUBLISHED: Published[] = [
	{
		service: '',
		base: 'https://api.example.com/v1',
		model: 'provider/model',
		create: '/api/generate',
		order: (prompt) => ({ model: 'provider/model', input: { prompt } }),
		callback: 'webhook_url',
		created: (taskId) => ({ taskId }),
		read: (id) => `/api/generate/${id}`,
		pending: (taskId) => ({ taskId, state: 'PENDING' }),
		done: (taskId, url) => ({ taskId, state: 'SUCCESS', resultUrls: [url] }),
		failed: (taskId) => ({ taskId, state: 'FAILURE', error: 'Unsafe prompt' }),
		reason: 'Unsafe prompt',
		balance: { path: '/api/credits', answer: { balance: 7 }, value: 7 },
	},
	{
		service: 'kie',
		base: 'https://api.kie.ai',
		model: 'bytedance/seedream',
		create: '/api/v1/jobs/createTask',
		order: (prompt) => ({ model: 'bytedance/seedream', input: { prompt } }),
		callback: 'callBackUrl',
		created: (taskId) => ofKie({ taskId }),
		read: (id) => `/api/v1/jobs/recordInfo?taskId=${id}`,
		pending: (taskId) => ofKie({ taskId, state: 'queuing' }),
		done: (taskId, url) => {
			const resultJson = JSON.stringify({ resultUrls: [url] });
			return ofKie({ taskId, state: 'success', resultJson });
		},
		failed: (taskId) => {
			const failed = { failCode: '422', failMsg: 'Sensitive content' };
			return ofKie({ taskId, state: 'fail', resultJson: '', ...failed });
		},
		reason: 'Sensitive content',
		balance: { path: '/api/v1/chat/credit', answer: ofKie(100), value: 100 },
	},
	{
		service: 'replicate',
		base: 'https://api.replicate.com/v1',
		model: 'black-forest-labs/flux-schnell',
		create: '/predictions',
		order: (prompt) => {
			const version = 'black-forest-labs/flux-schnell';
			return { version, input: { prompt }, webhook_events_filter: ['completed'] };
		},
		callback: 'webhook',
		created: (id) => ({
			id,
			status: 'starting',
			output: null,
			error: null,
			input: { prompt: 'x' },
		}),
		read: (id) => `/predictions/${id}`,
		pending: (id) => ({ id, status: 'processing', output: null, error: null }),
		done: (id, url) => ({ id, status: 'succeeded', output: [url], error: null }),
		failed: (id) => ({ id, status: 'failed', output: null, error: 'NSFW content detected' }),
		reason: 'NSFW content detected',
		balance: { path: '/account', answer: { type: 'user', username: 'me' }, value: null },
	},
	{
		service: 'wavespeed',
		base: 'https://api.wavespeed.ai/api/v3',
		model: 'wavespeed-ai/flux-dev',
		create: '/wavespeed-ai/flux-dev',
		order: (prompt) => ({ prompt }),
		callback: '?webhook',
		created: (id) => ofWaveSpeed({ id, status: 'created', outputs: [] }),
		read: (id) => `/predictions/${id}/result`,
		pending: (id) => ofWaveSpeed({ id, status: 'processing' }),
		done: (id, url) =>
			ofWaveSpeed({ id, status: 'completed', outputs: [url], urls: { get: 'https://x.test' } }),
		failed: (id) => ofWaveSpeed({ id, status: 'failed', outputs: [], error: 'Face not found' }),
		reason: 'Face not found',
		balance: { path: '/balance', answer: ofWaveSpeed({ balance: 1.5 }), value: 1.5 },
	},
	{
		service: 'deapi',
		base: 'https://api.deapi.ai/api/v2',
		model: 'images/generations/Flux1schnell',
		create: '/images/generations',
		order: (prompt) => ({ model: 'Flux1schnell', prompt }),
		callback: 'webhook_url',
		callbackBody: (id) => ({
			event: 'job.completed',
			data: { job_request_id: id, status: 'done' },
		}),
		created: (id) => ({ data: { request_id: id } }),
		read: (id) => `/jobs/${id}`,
		pending: () => ({ data: { status: 'processing', progress: 40, result_url: null } }),
		done: (_id, url) => ({ data: { status: 'done', progress: 100, result_url: url } }),
		failed: () => ({ data: { status: 'error', result_url: null, error_message: 'Worker lost' } }),
		reason: 'Worker lost',
		balance: { path: '/account/balance', answer: { balance: 4.9 }, value: 4.9 },
	},
	{
		service: 'luma',
		base: 'https://api.lumalabs.ai/dream-machine/v1',
		model: 'image/photon-1',
		create: '/generations/image',
		order: (prompt) => ({ model: 'photon-1', prompt }),
		callback: 'callback_url',
		created: (id) => ({ id, state: 'queued', assets: null }),
		read: (id) => `/generations/${id}`,
		pending: (id) => ({ id, state: 'dreaming', assets: null, failure_reason: null }),
		done: (id, url) => ({ id, state: 'completed', assets: { image: url, video: null } }),
		failed: (id) => ({ id, state: 'failed', assets: null, failure_reason: 'Moderation' }),
		reason: 'Moderation',
		balance: { path: '/credits', answer: { credit_balance: 250 }, value: 250 },
	},
	{
		service: 'runway',
		base: 'https://api.dev.runwayml.com/v1',
		model: 'text_to_image/gen4_image',
		create: '/text_to_image',
		order: (prompt) => ({ model: 'gen4_image', promptText: prompt }),
		created: (id) => ({ id }),
		read: (id) => `/tasks/${id}`,
		pending: (id) => ({ id, status: 'THROTTLED', createdAt: '2026-01-01T00:00:00Z' }),
		done: (id, url) => ({ id, status: 'SUCCEEDED', output: [url] }),
		failed: (id) => ({
			id,
			status: 'FAILED',
			failure: 'A public figure',
			failureCode: 'SAFETY.INPUT',
		}),
		reason: 'A public figure',
		balance: { path: '/organization', answer: { creditBalance: 12, usage: {} }, value: 12 },
	},
	{
		service: 'bfl',
		base: 'https://api.us1.bfl.ai/v1',
		model: 'flux-2-pro',
		auth: ['x-key', ''],
		create: '/flux-2-pro',
		order: (prompt) => ({ prompt }),
		callback: 'webhook_url',
		created: (id) => ({ id, polling_url: `https://api.us1.bfl.ai/v1/get_result?id=${id}` }),
		read: (id) => `/get_result?id=${id}`,
		pending: (id) => ({ id, status: 'Pending', result: null, progress: 0.5 }),
		done: (id, url) => ({ id, status: 'Ready', result: { sample: url, prompt: 'x', seed: 1 } }),
		failed: (id) => {
			const details = { 'Moderation Reasons': ['Derivative Works'] };
			return { id, status: 'Request Moderated', result: null, details };
		},
		reason: 'Derivative Works',
		balance: { path: '/credits', answer: { credits: 33 }, value: 33 },
	},
	{
		service: 'ark',
		base: 'https://ark.cn-beijing.volces.com/api/v3',
		model: 'doubao-seedance-2-0',
		create: '/contents/generations/tasks',
		order: (text) => ({ model: 'doubao-seedance-2-0', content: [{ type: 'text', text }] }),
		callback: 'callback_url',
		created: (id) => ({ id }),
		read: (id) => `/contents/generations/tasks/${id}`,
		pending: (id) => ({ id, model: 'doubao-seedance-2-0', status: 'running' }),
		done: (id, url) => ({ id, status: 'succeeded', content: { video_url: url } }),
		failed: (id) => ({
			id,
			status: 'failed',
			error: { code: 'Sensitive', message: 'Not allowed' },
		}),
		reason: 'Not allowed',
		balance: {
			path: '/contents/generations/tasks?page_size=1',
			answer: { items: [] },
			value: null,
		},
	},
	{
		service: 'openai',
		base: 'https://api.openai.com/v1',
		model: 'sora-2',
		create: '/videos',
		order: (prompt) => ({ model: 'sora-2', prompt }),
		created: (id) => ({ id, object: 'video', status: 'queued', progress: 0 }),
		read: (id) => `/videos/${id}`,
		pending: (id) => ({ id, object: 'video', status: 'in_progress', progress: 33, error: null }),
		done: (id) => ({ id, object: 'video', status: 'completed', progress: 100, error: null }),
		failed: (id) => {
			const error = { code: 'moderation_blocked', message: 'Blocked by moderation' };
			return { id, object: 'video', status: 'failed', error };
		},
		reason: 'Blocked by moderation',
		file: (id) => `/videos/${id}/content`,
		balance: { path: '/models', answer: { object: 'list', data: [] }, value: null },
	},
	{
		service: 'fal',
		base: 'https://queue.fal.run',
		model: 'fal-ai/flux/dev',
		auth: ['authorization', 'Key '],
		create: '/fal-ai/flux/dev',
		order: (prompt) => ({ prompt }),
		callback: '?fal_webhook',
		callbackBody: (id) => ({ request_id: id, gateway_request_id: id, status: 'OK', payload: {} }),
		created: (id) => {
			const response_url = `https://queue.fal.run/fal-ai/flux/requests/${id}`;
			return { request_id: id, gateway_request_id: id, response_url, status: 'IN_QUEUE' };
		},
		read: (id) => `/fal-ai/flux/requests/${id}/status`,
		shownId: (id) => `fal-ai/flux/dev/${id}`,
		pending: (id) => ({ status: 'IN_PROGRESS', request_id: id, logs: null }),
		done: (id) => ({ status: 'COMPLETED', request_id: id, metrics: { inference_time: 3 } }),
		failed: (id) => ({ status: 'COMPLETED', request_id: id, metrics: { inference_time: 3 } }),
		reason: 'The content could not be processed',
		result: {
			path: (id) => `/fal-ai/flux/requests/${id}`,
			done: (url) => ({ images: [{ url, content_type: 'image/png' }], seed: 7, prompt: 'x' }),
			failed: { detail: [{ loc: ['body'], msg: 'The content could not be processed' }] },
		},
		balance: {
			path: `/fal-ai/flux/requests/${UUID}/status`,
			status: 404,
			answer: { detail: 'Request not found' },
			value: null,
		},
	},
	{
		service: 'segmind',
		base: 'https://api.segmind.com',
		model: 'seedream-4.5',
		auth: ['x-api-key', ''],
		create: '/v2/seedream-4.5',
		order: (prompt) => ({ prompt }),
		created: (id) => {
			const poll_url = `https://api.segmind.com/v1/requests/${id}`;
			return { request_id: id, status: 'QUEUED', poll_url };
		},
		read: (id) => `/v2/requests/${id}`,
		pending: (id) => ({ status: 'PROCESSING', request_id: id, metrics: {} }),
		done: (id, url) => ({ status: 'COMPLETED', request_id: id, output: url }),
		failed: (id) => ({ status: 'FAILED', request_id: id, error: 'Out of memory' }),
		reason: 'Out of memory',
		balance: {
			path: '/v1/get-user-credits',
			answer: { credits: 0.5, 'free-credits': 0.01 },
			value: 0.5,
		},
	},
];

/** What a stand-in was asked. */
export interface Asked {
	method: string;
	/** Below the base URL, with the query. */
	path: string;
	body: IDataObject | undefined;
	status: number;
	headers: Record<string, unknown>;
}

/** An answer: JSON, or the bytes of a file. */
export interface Reply {
	status: number;
	headers?: Record<string, string>;
	body: IDataObject | Buffer;
}

/** How a task goes on: it is read so often before its end, and ends so. */
export interface Course {
	reads?: number;
	end?: 'done' | 'failed';
}

/** A service that answers as its pages say, and knows nothing else. */
export class StandIn {
	readonly asked: Asked[] = [];
	/** The callback addresses of the orders, oldest first. */
	readonly callbacks: string[] = [];
	/** So many orders are answered 429 first. */
	busyFor = 0;
	course: Course = {};

	private readonly reads = new Map<string, number>();

	constructor(
		readonly published: Published,
		private readonly apiKey: string,
		private readonly file: { url: string; bytes: Buffer },
	) {}

	/** The ids of the tasks, oldest first. */
	get ids(): string[] {
		return [...this.reads.keys()];
	}

	/** What was asked that the service does not know. */
	get unknown(): Asked[] {
		return this.asked.filter(({ status }) => status === 599);
	}

	/** @param path below the base URL, with the query */
	answer(...asked: Parameters<StandIn['reply']>): Reply {
		const [method, path, headers, body] = asked;
		const reply = this.reply(...asked);
		this.asked.push({ method, path, body, status: reply.status, headers });
		return reply;
	}

	reply(method: string, path: string, headers: Asked['headers'], body?: IDataObject): Reply {
		const { published } = this;
		const [name, before] = published.auth ?? ['authorization', 'Bearer '];
		if (headers[name] !== before + this.apiKey) {
			return { status: 401, body: { error: 'Invalid API key' } };
		}
		if (method === 'POST') return this.order(path, body ?? {});
		const { balance, result } = published;
		if (path === balance.path) return { status: balance.status ?? 200, body: balance.answer };
		const id = this.ids.find((each) =>
			[published.read, result?.path, published.file].some((of) => of?.(each) === path),
		);
		if (id === undefined) return { status: 599, body: { error: 'Unknown address' } };
		if (path === published.file?.(id)) {
			return { status: 200, headers: { 'content-type': 'image/png' }, body: this.file.bytes };
		}
		const { reads = 0, end = 'done' } = this.course;
		if (path === result?.path(id)) {
			return end === 'done'
				? { status: 200, body: result.done(this.file.url) }
				: { status: 422, body: result.failed };
		}
		const read = (this.reads.get(id) ?? 0) + 1;
		this.reads.set(id, read);
		if (read <= reads) return { status: 200, body: published.pending(id) };
		return { status: 200, body: published[end](id, this.file.url) };
	}

	private order(path: string, body: IDataObject): Reply {
		const { create, callback, created, order } = this.published;
		const [way, query = ''] = path.split('?');
		const address = callback?.startsWith('?')
			? new URLSearchParams(query).get(callback.slice(1))
			: callback && body[callback];
		const { [callback ?? '']: _, ...rest } = body;
		const prompt = JSON.stringify(rest).includes('fails') ? 'fails' : 'x';
		const isKnown =
			way === create && JSON.stringify(sorted(rest)) === JSON.stringify(sorted(order(prompt)));
		if (!isKnown) return { status: 599, body: { error: 'Unknown order' } };
		if (this.busyFor > 0) {
			this.busyFor--;
			return { status: 429, headers: { 'retry-after': '3' }, body: { error: 'Slow down' } };
		}
		if (typeof address === 'string') this.callbacks.push(address);
		const id = `t-${this.reads.size + 1}`;
		this.reads.set(id, 0);
		return { status: 200, body: created(id) };
	}
}

const sorted = (object: IDataObject) =>
	Object.entries(object).sort(([a], [b]) => a.localeCompare(b));
