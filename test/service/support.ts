import { json } from 'node:stream/consumers';

import { listen } from '../listen';
import { until as untilSoon } from '../n8n/until';
import {
	type ServiceOptions,
	type SimulatedService,
	startService,
	type TaskRecord,
} from './service';

export const IMAGE_MODEL = 'imagevendor/image-model-2-text-to-image';
export const VIDEO_MODEL = 'videovendor/video-model-2-mini';

/** A client of the service as its tests need one: plain HTTP and no conveniences. */
export class Client {
	constructor(private readonly service: SimulatedService) {}

	request(path: string, init: RequestInit = {}): Promise<Response> {
		const authorization = `Bearer ${this.service.apiKey}`;
		const headers = { authorization, 'content-type': 'application/json', ...init.headers };
		return fetch(`${this.service.url}${path}`, { ...init, headers });
	}

	post(body: unknown): Promise<Response> {
		return this.request('/api/generate', { method: 'POST', body: JSON.stringify(body) });
	}

	/** Creates a picture, or what else `fields` say, and returns its id. */
	async create(input: object = {}, fields: object = {}): Promise<string> {
		const response = await this.post({
			model: IMAGE_MODEL,
			input: { prompt: 'A lighthouse at dawn', ...input },
			...fields,
		});
		if (!response.ok) throw new Error(`${response.status} ${await response.text()}`);
		return ((await response.json()) as { taskId: string }).taskId;
	}

	async read(taskId: string): Promise<TaskRecord> {
		const response = await this.request(`/api/generate/${taskId}`);
		return (await response.json()) as TaskRecord;
	}

	async credits(): Promise<{ balance: number; reserved: number }> {
		const response = await this.request('/api/credits');
		return (await response.json()) as { balance: number; reserved: number };
	}
}

/** The service of a test file, and a client of it. */
export let service: SimulatedService;
export let client: Client;

/** Starts the service for the tests of a file; each of them begins with no tasks, and with these switches. */
export function useService(options: ServiceOptions): void {
	beforeAll(async () => {
		service = await startService(options);
		client = new Client(service);
	});
	afterEach(() => {
		service.resetSettings();
		service.clear();
	});
	afterAll(async () => await service.close());
}

/** A receiver of callbacks; `answer` decides the status of the nth one. */
export async function startReceiver(answer: (index: number) => number = () => 200) {
	const bodies: TaskRecord[] = [];
	const { url, close } = await listen(async (request, response) => {
		bodies.push((await json(request)) as TaskRecord);
		response.writeHead(answer(bodies.length - 1)).end();
	});
	return { url: `${url}/callback`, bodies, close };
}

/** Waits until a condition holds. */
export const until = async (holds: () => boolean | Promise<boolean>) =>
	await untilSoon(() => holds.toString(), 3000, holds, 5);
