import { join } from 'node:path';
import { Worker } from 'node:worker_threads';

import type { DrawJob, WorkerAnswer, WorkerRequest } from './job';

type Waiting = { resolve: (file: Buffer) => void; reject: (error: Error) => void };

/** Media that are kept, so that a second download costs nothing. */
const KEPT = 100;

/**
 * Loads the worker's TypeScript, whatever compiles that of this thread: the tests' compiler does not
 * reach into a worker, and tsx does so only from its command line.
 */
const BOOTSTRAP = [require.resolve('tsx/cjs'), join(__dirname, 'worker.ts')]
	.map((file) => `require(${JSON.stringify(file)});`)
	.join('\n');

/** Draws pictures and videos in a thread of its own, which keeps the service's answers fast. */
export class Studio {
	private worker?: Worker;
	private readonly waiting = new Map<number, Waiting>();
	private readonly files = new Map<string, Promise<Buffer>>();
	private lastId = 0;

	/** The file with this name: drawn on the first call, remembered afterwards. */
	file(name: string, makeJob: () => DrawJob | Promise<DrawJob>): Promise<Buffer> {
		const known = this.files.get(name);
		if (known) return known;
		const file = Promise.resolve(makeJob()).then((job) => this.draw(job));
		this.files.set(name, file);
		file.catch(() => this.files.delete(name));
		const [oldest] = this.files.keys();
		if (oldest !== undefined && this.files.size > KEPT) this.files.delete(oldest);
		return file;
	}

	clear(): void {
		this.files.clear();
	}

	async close(): Promise<void> {
		this.clear();
		await this.worker?.terminate();
	}

	private draw(job: DrawJob): Promise<Buffer> {
		const worker = (this.worker ??= this.startWorker());
		const id = ++this.lastId;
		return new Promise((resolve, reject) => {
			this.waiting.set(id, { resolve, reject });
			worker.postMessage({ id, job } satisfies WorkerRequest);
		});
	}

	private startWorker(): Worker {
		const worker = new Worker(BOOTSTRAP, { eval: true, execArgv: [] });
		worker.on('message', (answer: WorkerAnswer) => {
			const waiting = this.waiting.get(answer.id);
			this.waiting.delete(answer.id);
			if ('file' in answer) waiting?.resolve(Buffer.from(answer.file));
			else waiting?.reject(new Error(answer.error));
		});
		worker.on('error', (error: Error) => this.lose(error));
		worker.on('exit', () => this.lose(new Error('The media worker ended.')));
		return worker;
	}

	/** Nothing that was asked of a worker that is gone will come; the next file starts another. */
	private lose(error: Error): void {
		this.worker = undefined;
		for (const { reject } of this.waiting.values()) reject(error);
		this.waiting.clear();
	}
}
