import type { IBinaryData, IExecuteFunctions } from 'n8n-workflow';

import { stopSignal } from '../n8n/internals';
import { classifyAnswer } from '../service/answer';
import type { TaskRecord } from '../service/taskRecord';
import { Semaphore, settled } from '../shared/promises';
import { clock, sleepUntil, Stopped, unlessStalled } from '../shared/clock';
import { cutDataUri } from '../shared/dataUri';
import { ItemError } from '../shared/itemError';
import { describeFile } from './fileName';
import { AGAIN, explainStorage, isStorageFull } from './fileStorage';
import { openResult, type StreamResponse, wordsOf } from './openResult';

/** How many items download at once. Downloads hold no place of a task, so a slow media host delays no create. */
const DOWNLOADS_AT_ONCE = 10;

/** Far above any image or clip, and less than what fills a disk overnight. */
const MAX_DOWNLOAD_BYTES = 2 * 1024 ** 3;

const MINUTE_MS = 60_000;

/** A transfer that brings less is broken off: a host that sends a byte now and then would never end it. */
const LEAST_BYTES_A_MINUTE = 64 * 1024;

/** How long a run goes on while no file arrives, milliseconds. */
const TRY_MS = 10 * MINUTE_MS;

/** The pause after a first failure; each further pause is twice as long, up to the longest. */
const FIRST_PAUSE_MS = 2_000;
const MAX_PAUSE_MS = MINUTE_MS;

/** How long a fresh link is tried, whatever the host says: the file may not have reached the host yet. */
const FRESH_MS = 2 * MINUTE_MS;

/** A file did not come, and a later try may bring it: the media host is in trouble. */
export class PassingTrouble extends ItemError {
	/** @param retryAfterMs how long the host asks to wait, milliseconds */
	constructor(
		trouble: ItemError,
		readonly retryAfterMs?: number,
	) {
		super(trouble.message, trouble);
	}
}

/** The result of one try: the file, or why there is none. */
type Try = { file: IBinaryData } | Trouble;

interface Trouble {
	trouble: ItemError;
	retryAfterMs?: number | undefined;
	/** Whether the host says that it has no such file. Of a fresh link that may pass. */
	isOfLink?: boolean;
}

/**
 * Downloads the results of a run's tasks as n8n's binary data. The data are streamed: with n8n's file-system or S3
 * storage memory holds no file. The media hosts get no API key.
 *
 * The tasks are paid for, so a download begins anew after a passing status, a reset, a timeout, a transfer that breaks
 * off or stands still, and of a fresh link after any answer. The pauses grow, and observe `Retry-After`.
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
	 * The results of a task, one for each result URL.
	 *
	 * @param giveUpAt no try but the first begins after this moment, milliseconds of the clock
	 * @param isFresh whether no earlier call has tried the links
	 * @throws PassingTrouble if a later call may bring the files; ItemError, UserError if none can
	 * @throws Stopped if the execution was stopped
	 */
	async filesOf(task: TaskRecord, giveUpAt: number, isFresh = true): Promise<IBinaryData[]> {
		if (task.state !== 'SUCCESS') return [];
		const { taskId, resultUrls } = task;
		return await this.atOnce.run(async () => {
			const freshUntil = isFresh ? clock.now() + FRESH_MS : -Infinity;
			const files: IBinaryData[] = [];
			// One after the other: the tasks of a batch are parallel already.
			for (const [index, url] of resultUrls.entries()) {
				const name = resultUrls.length === 1 ? taskId : `${taskId}_${index}`;
				files.push(await this.untilItComes(url, name, giveUpAt, freshUntil));
			}
			return files;
		});
	}

	private async untilItComes(
		url: string,
		name: string,
		deadline: number,
		freshUntil: number,
	): Promise<IBinaryData> {
		const giveUpAt = Math.min(deadline, clock.now() + this.tryMs);
		const signal = stopSignal(this.context);
		for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(2 * pauseMs, MAX_PAUSE_MS)) {
			const tried = await settled(this.tryOnce(url, name));
			if (signal?.aborted) throw new Stopped();
			if ('error' in tried) throw tried.error;
			if ('file' in tried.value) {
				this.failingSince = undefined;
				return tried.value.file;
			}
			const { trouble, retryAfterMs, isOfLink = false } = tried.value;
			const next = clock.now() + Math.max(pauseMs, retryAfterMs ?? 0);
			if (isOfLink && next > freshUntil) throw trouble;
			const hostUntil = isOfLink ? Infinity : this.noteFailure() + this.tryMs;
			if (next > Math.min(giveUpAt, hostUntil)) throw new PassingTrouble(trouble, retryAfterMs);
			await sleepUntil(next, signal);
		}
	}

	/** The host is in trouble. @returns since when no file has come */
	private noteFailure(): number {
		const now = clock.now();
		// Failures of long ago, with no try since then, tell nothing about the host.
		if (now - this.failedAt > this.tryMs) this.failingSince = undefined;
		this.failedAt = now;
		return (this.failingSince ??= now);
	}

	private async tryOnce(url: string, stem: string): Promise<Try> {
		const opened = await openResult(this.context, url);
		if ('trouble' in opened) return opened;
		const type =
			(opened.headers['content-type'] ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? '';
		return (await refusalOf(opened, url, type)) ?? (await this.store(opened, url, type, stem));
	}

	/**
	 * Streams a file into n8n's storage.
	 *
	 * @param type the media type from the host, in lower case, without parameters
	 * @throws ItemError if the file is too large, or n8n does not keep it
	 */
	private async store(
		opened: StreamResponse,
		url: string,
		type: string,
		stem: string,
	): Promise<Try> {
		const { headers, body } = opened;
		const because = endingOf(opened, url);
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
		const stored = await unlessStalled(storing, progress, LEAST_BYTES_A_MINUTE, MINUTE_MS);
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
		const empty = because(
			'The result is empty',
			'Read the task again later with the operation Task → Get.',
		);
		return { trouble: empty, isOfLink: true };
	}
}

/** @returns why there is no file, if the host has answered with something else than media */
async function refusalOf(
	opened: StreamResponse,
	url: string,
	type: string,
): Promise<Trouble | undefined> {
	const { statusCode, headers } = opened;
	const head = { statusCode, headers, body: '' };
	const { kind, again, retryAfterMs } = classifyAnswer(head, Date.now());
	const isText = /^text\/(html|plain)$|[/+]json$/.test(type);
	const isMedia = kind === 'answered' && (!isText || /\.(json|txt)$/i.test(new URL(url).pathname));
	if (isMedia) return undefined;
	const said = isText ? await wordsOf(opened) : '';
	const what =
		kind !== 'answered'
			? `The result could not be downloaded (HTTP ${statusCode})`
			: type === 'text/html'
				? 'The result host answered with a web page instead of media'
				: 'The result host answered with a message instead of media';
	const next =
		kind !== 'answered'
			? 'The task is done and paid for. Its result URLs may have expired: read the task again with the operation Task → Get.'
			: `Open the URL in a browser to see what it says. ${AGAIN}`;
	return { trouble: endingOf(opened, url)(what, next, said), retryAfterMs, isOfLink: !again };
}

/** Ends a transfer without its file. @returns a function that does so, and makes the error that says why */
const endingOf =
	({ body }: StreamResponse, url: string) =>
	(what: string, next: string, said = ''): ItemError => {
		body.destroy();
		return new ItemError(`${what}: ${cutDataUri(url)}${said}`, { description: next });
	};
