import type { IBinaryData, IDataObject, IExecuteFunctions, INodeExecutionData } from 'n8n-workflow';

import { retryAfterMs } from '../service/retryAfter';
import type { TaskRecord } from '../service/taskRecord';
import { Semaphore, settled } from '../shared/promises';
import { clock, sleepUntil, Stopped, unlessStalled } from '../shared/clock';
import { cutDataUri } from '../shared/dataUri';
import { ItemError } from '../shared/itemError';
import { forbiddenAddress } from '../shared/privateAddress';
import { type Destination, taskItems } from './taskItems';
import { describeFile } from './fileName';
import { AGAIN, explainStorage, isStorageFull } from './fileStorage';

/** How many items download at once. Downloads hold no place of a task, so a slow media host delays no create. */
const DOWNLOADS_AT_ONCE = 10;

/** Far above any image or clip, and less than what fills a disk overnight. */
const MAX_DOWNLOAD_BYTES = 2 * 1024 ** 3;

/** How long a run goes on while no file arrives, milliseconds. */
const TRY_MS = 10 * 60_000;

/** How long to wait for the begin of an answer, and for its next bytes. The whole transfer may take longer. */
const HOST_TIMEOUT_MS = 60_000;

/** The pause after a first failure; each further pause is twice as long, up to the longest. */
const FIRST_PAUSE_MS = 2_000;
const MAX_PAUSE_MS = 60_000;

/** With these statuses a host says that it cannot send the file at the moment. */
const PASSING = [408, 425, 429, 500, 502, 503, 504];

/** A file did not come, and a later try may bring it: the media host is in trouble. */
export class PassingTrouble extends ItemError {}

/** The used part of a Node.js stream; n8n forbids importing the module itself. */
interface ByteStream {
	map(
		each: (chunk: Uint8Array) => Uint8Array,
	): Parameters<IExecuteFunctions['helpers']['prepareBinaryData']>[0] & { readableEnded?: boolean };
	readonly readableEnded: boolean;
	destroy(): void;
}

interface StreamResponse {
	statusCode: number;
	headers: Record<string, string | undefined>;
	body: ByteStream;
}

/** The result of one try: the file, or why the next try may bring it. */
type Try = { file: IBinaryData } | { trouble: ItemError; retryAfterMs?: number | undefined };

/**
 * Downloads the results of a run's tasks as n8n's binary data. The data are streamed: with n8n's file-system or S3
 * storage memory holds no file. The media hosts get no API key.
 *
 * The tasks are paid for, so a download begins anew after a passing status, a reset, a timeout, a transfer that breaks
 * off or stands still. The pauses grow, and observe `Retry-After`.
 */
export class Downloader {
	/** Since when no try has brought a file, and when the last try failed; milliseconds of the clock. */
	private failingSince: number | undefined;
	private failedAt = -Infinity;

	private readonly atOnce = new Semaphore(DOWNLOADS_AT_ONCE);

	/**
	 * @param tryMs how long to try a file, and how long a run goes on while no file arrives, milliseconds
	 * @param maxBytes the size of the largest result that is accepted
	 */
	constructor(
		private readonly context: IExecuteFunctions,
		private readonly tryMs = TRY_MS,
		private readonly maxBytes = MAX_DOWNLOAD_BYTES,
	) {}

	/**
	 * The output items of a task, with its results as binary data if the options ask for them.
	 *
	 * @param json the fields that each item of the task has
	 * @param deadline no try begins after this moment, milliseconds of the clock
	 * @throws ItemError with these fields if a result cannot be downloaded
	 * @throws Stopped if the execution was stopped
	 */
	async itemsOf(
		task: TaskRecord,
		json: IDataObject,
		destination: Destination,
		deadline = Infinity,
	): Promise<INodeExecutionData[]> {
		if (!destination.output.download || task.state !== 'SUCCESS') {
			return taskItems(task, json, destination);
		}
		const files = await settled(this.filesOf(task, deadline));
		if ('value' in files) return taskItems(task, json, destination, files.value);
		throw files.error instanceof Stopped ? files.error : ItemError.from(files.error, json);
	}

	/**
	 * The results of a task, one for each result URL.
	 *
	 * @param giveUpAt no try but the first begins after this moment, milliseconds of the clock
	 * @throws PassingTrouble if a later call may bring the files; ItemError, UserError if none can
	 * @throws Stopped if the execution was stopped
	 */
	async filesOf(task: TaskRecord, giveUpAt: number): Promise<IBinaryData[]> {
		if (task.state !== 'SUCCESS') return [];
		const { taskId, resultUrls } = task;
		return await this.atOnce.run(async () => {
			const files: IBinaryData[] = [];
			// One after the other: the tasks of a batch are parallel already.
			for (const [index, url] of resultUrls.entries()) {
				const name = resultUrls.length === 1 ? taskId : `${taskId}_${index}`;
				files.push(await this.untilItComes(url, name, giveUpAt));
			}
			return files;
		});
	}

	private async untilItComes(url: string, name: string, deadline: number): Promise<IBinaryData> {
		const { tryMs } = this;
		const giveUpAt = Math.min(deadline, clock.now() + tryMs);
		const signal = this.context.getExecutionCancelSignal();
		for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(2 * pauseMs, MAX_PAUSE_MS)) {
			const tried = await settled(this.tryOnce(url, name));
			if (signal?.aborted) throw new Stopped();
			if ('error' in tried) throw tried.error;
			if ('file' in tried.value) {
				this.failingSince = undefined;
				return tried.value.file;
			}
			const now = clock.now();
			// Failures of long ago, with no try since then, tell nothing about the host.
			if (now - this.failedAt > tryMs) this.failingSince = undefined;
			this.failingSince ??= now;
			this.failedAt = now;
			const next = now + Math.max(pauseMs, tried.value.retryAfterMs ?? 0);
			if (next > Math.min(giveUpAt, this.failingSince + tryMs)) {
				throw new PassingTrouble(tried.value.trouble.message, tried.value.trouble);
			}
			await sleepUntil(next, signal);
		}
	}

	private async tryOnce(url: string, stem: string): Promise<Try> {
		const opened = await open(this.context, url);
		if ('trouble' in opened) return opened;
		const { statusCode, headers, body } = opened;
		const because = (what: string, next: string): ItemError => {
			body.destroy();
			return new ItemError(`${what}: ${cutDataUri(url)}`, { description: next });
		};
		if (statusCode < 200 || statusCode >= 300) {
			const trouble = because(
				`The result could not be downloaded (HTTP ${statusCode})`,
				'The task is done and paid for. Its result URLs may have expired: read the task again with the operation Task → Get.',
			);
			if (!PASSING.includes(statusCode)) throw trouble;
			return { trouble, retryAfterMs: retryAfterMs(headers, Date.now()) };
		}
		const type = (headers['content-type'] ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? '';
		if (type === 'text/html') {
			throw because(
				'The result host answered with a web page instead of media',
				`Open the URL in a browser to see what it says. ${AGAIN}`,
			);
		}
		const tooLarge = () =>
			because(
				`The result is larger than ${Math.floor(this.maxBytes / 1024 ** 2)} MiB`,
				"Switch off 'Download Results' and use the result URLs.",
			);
		if (Number(headers['content-length']) > this.maxBytes) throw tooLarge();

		const { name, mimeType } = describeFile(url, type, stem);
		let bytes = 0;
		const counted = body.map((chunk) => {
			bytes += chunk.length;
			if (bytes > this.maxBytes) throw new ItemError('The result is too large');
			return chunk;
		});
		const storing = settled(this.context.helpers.prepareBinaryData(counted, name, mimeType));
		const progress = () => (body.readableEnded ? undefined : bytes);
		const stored = await unlessStalled(storing, progress, HOST_TIMEOUT_MS);
		if (bytes > this.maxBytes) throw tooLarge();
		if (stored && 'error' in stored && (counted.readableEnded || isStorageFull(stored.error))) {
			throw because(
				`n8n could not keep the result of ${Math.ceil(bytes / 1024 ** 2)} MiB`,
				explainStorage(stored.error),
			);
		}
		if (stored === undefined || 'error' in stored) {
			return { trouble: because(`The download broke off after ${bytes} bytes`, AGAIN) };
		}
		if (bytes > 0) return { file: stored.value };
		throw because(
			'The result is empty',
			'Read the task again later with the operation Task → Get.',
		);
	}
}

/**
 * Opens the stream of a result. Redirects are followed, because the request has no key.
 *
 * @throws ItemError, UserError if no other try can bring the file
 */
async function open(
	context: IExecuteFunctions,
	url: string,
): Promise<StreamResponse | { trouble: ItemError }> {
	const opening: Promise<StreamResponse> = context.helpers.httpRequest({
		url,
		method: 'GET',
		encoding: 'stream',
		returnFullResponse: true,
		ignoreHttpStatusErrors: true,
		timeout: HOST_TIMEOUT_MS,
		abortSignal: context.getExecutionCancelSignal(),
	});
	const response = await settled(opening);
	if ('value' in response) return response.value;
	const forbidden = forbiddenAddress(
		response.error,
		`n8n does not let this node fetch the result: ${cutDataUri(url)}`,
	);
	if (forbidden !== undefined) throw forbidden;
	const trouble = new ItemError(`The host of the result cannot be reached: ${cutDataUri(url)}`, {
		description: `Check that n8n may connect to this host. ${AGAIN}`,
	});
	if (!URL.canParse(url) || !new URL(url).protocol.startsWith('http')) throw trouble;
	return { trouble };
}
