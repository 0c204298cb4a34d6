import type { IBinaryData, IExecuteFunctions } from 'n8n-workflow';

import { stopSignal } from '../n8n/internals';
import type { OpenFile } from '../service/connect';
import { resultIndexes, type TaskRecord } from '../service/taskRecord';
import {
	clock,
	MINUTE_MS,
	Semaphore,
	settled,
	sleepUntil,
	Stopped,
	unlessStalled,
	withTimeLimit,
} from '../shared/clock';
import { ItemError, messageOf } from '../shared/itemError';
import { extensionFor, isDataUri, mediaTypeOf } from '../shared/media';
import {
	AGAIN,
	firstBytes,
	brokeOff,
	endingOf,
	type MediaAnswer,
	openResult,
	refusalOf,
	type Trouble,
} from './mediaHost';

/** How many items download at once. Downloads hold no place of a task, so a slow media host delays no create. */
const DOWNLOADS_AT_ONCE = 10;

/** Far above any image or clip, and less than what fills a disk overnight. */
const MAX_DOWNLOAD_BYTES = 2 * 1024 ** 3;

/** A transfer that brings less is broken off: a host that sends a byte now and then would never end it. */
const LEAST_BYTES_A_MINUTE = 64 * 1024;

/** How long a run goes on while no file arrives, milliseconds. */
const TRY_MS = 10 * MINUTE_MS;

/** The pause after a first failure; each further pause is twice as long, up to the longest. */
const FIRST_PAUSE_MS = 2_000;
const MAX_PAUSE_MS = MINUTE_MS;

/** How long a fresh link is tried, whatever the host says: the file may not have reached the host yet. */
const FRESH_MS = 2 * MINUTE_MS;

/** A link that has stood in line for longer is read again first: signed links end, some after a minute. */
const LINK_AGE_MS = 15_000;

/** What is known of the task whose results are wanted. */
interface Wanted {
	/** The beginning of the names of the files. */
	stem: string;
	/** No try but the first begins after this moment, milliseconds of the clock. */
	giveUpAt: number;
	/** When an earlier call began to try the links, milliseconds of the clock; none if they were read a moment ago. */
	triedSince?: number | undefined;
	/** Reads the task again; undefined if it could not be read. */
	readAgain: () => Promise<TaskRecord | undefined>;
}

/** A file did not come, and a later try may bring it: the media host is in trouble. */
export class PassingTrouble extends ItemError {
	/** @param retryAfterMs how long the host asks to wait, milliseconds */
	constructor(
		trouble: ItemError,
		readonly retryAfterMs = 0,
	) {
		super(trouble.message, trouble);
	}
}

type Try = { file: IBinaryData } | Trouble;

/** The links to the results of a task: a link may end before its file has come, so the task is read again. */
class Links {
	/** Whether the last read brought the links. */
	isRead = true;

	constructor(
		private urls: readonly string[],
		private readonly readAgain: Wanted['readAgain'],
	) {}

	at(index: number): string {
		return this.urls[index] ?? '';
	}

	/** @throws Stopped if the execution was stopped */
	async renew(): Promise<void> {
		const read = await settled(this.readAgain);
		if ('error' in read && read.error instanceof Stopped) throw read.error;
		const task = 'value' in read ? read.value : undefined;
		this.isRead = task?.state === 'SUCCESS' && task.resultUrls.length === this.urls.length;
		if (task?.state === 'SUCCESS' && this.isRead) this.urls = task.resultUrls;
	}
}

/**
 * Downloads the results of a run's tasks as n8n's binary data. The data are streamed: with n8n's file-system or S3
 * storage memory holds no file. Only results below the base URL are fetched with the API key.
 *
 * The tasks are paid for, so a download begins anew after a passing status, a reset, a timeout, a transfer that breaks
 * off or stands still, and of a fresh link after any answer; with the links of another read each time. The pauses grow,
 * and observe `Retry-After`.
 */
export class Downloader {
	/** Since when no try has brought a file, and when the last try failed; milliseconds of the clock. */
	private failingSince: number | undefined;
	private failedAt = -Infinity;

	private readonly atOnce = new Semaphore(DOWNLOADS_AT_ONCE);

	/**
	 * @param openFile opens results below the base URL; undefined if no credential can be used
	 * @param tryMs how long to try a file, and how long a run goes on while no file arrives, milliseconds
	 * @param maxBytes the size of the largest result that is accepted
	 */
	constructor(
		private readonly context: IExecuteFunctions,
		private readonly openFile: OpenFile | undefined,
		private readonly tryMs = TRY_MS,
		private readonly maxBytes = MAX_DOWNLOAD_BYTES,
	) {}

	/**
	 * The results of a task, one for each result URL.
	 *
	 * @throws PassingTrouble if a later call may bring the files; ItemError, UserError if none can
	 * @throws Stopped if the execution was stopped
	 */
	async filesOf(task: TaskRecord, wanted: Wanted): Promise<IBinaryData[]> {
		if (task.state !== 'SUCCESS') return [];
		const { resultUrls } = task;
		const links = new Links(resultUrls, wanted.readAgain);
		const askedAt = clock.now();
		return await this.atOnce.run(async () => {
			if (wanted.triedSince !== undefined || clock.now() - askedAt > LINK_AGE_MS)
				await links.renew();
			const files: IBinaryData[] = [];
			// One after the other: the tasks of a batch are parallel already.
			for (const [at, index] of resultIndexes(task).entries()) {
				const number = resultUrls.length === 1 ? '' : `-${index + 1}`;
				files.push(await this.untilItComes(links, at, wanted.stem + number, wanted));
			}
			return files;
		});
	}

	private async untilItComes(
		links: Links,
		at: number,
		name: string,
		{ giveUpAt: deadline, triedSince }: Wanted,
	): Promise<IBinaryData> {
		const beganAt = clock.now();
		const giveUpAt = Math.min(deadline, beganAt + this.tryMs);
		const freshUntil = (triedSince ?? beganAt) + FRESH_MS;
		const signal = stopSignal(this.context);
		for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(2 * pauseMs, MAX_PAUSE_MS)) {
			const tried = await settled(this.tryOnce(links.at(at), name));
			if (signal?.aborted) throw new Stopped();
			if ('error' in tried) throw tried.error;
			if ('file' in tried.value) {
				this.failingSince = undefined;
				return tried.value.file;
			}
			const { trouble, retryAfterMs } = tried.value;
			// A link of an earlier read may have ended.
			const isOfLink = tried.value.isOfLink === true && links.isRead;
			const now = clock.now();
			if (isOfLink && now >= freshUntil) throw trouble;
			// The last try comes at the end of the time.
			const latest = isOfLink ? freshUntil : Infinity;
			const next = Math.min(latest, now + Math.max(pauseMs, retryAfterMs ?? 0));
			const hostUntil = isOfLink ? Infinity : this.noteFailure() + this.tryMs;
			if (next > Math.min(giveUpAt, hostUntil)) throw new PassingTrouble(trouble, retryAfterMs);
			await sleepUntil(next, signal);
			await links.renew();
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

	private async tryOnce(url: string, name: string): Promise<Try> {
		const opened = await openResult(this.context, url, this.openFile);
		if ('trouble' in opened) return opened;
		const begun = await withTimeLimit(settled(firstBytes(opened)), MINUTE_MS);
		if (begun === undefined || 'error' in begun) return brokeOff(endingOf(opened, url), 0);
		const refusal = await refusalOf(opened, url, begun.value);
		return refusal ?? (await this.store(opened, url, begun.value, name));
	}

	/**
	 * Streams a file into n8n's storage.
	 *
	 * @param beginning the first bytes, or the whole file if its stream has ended
	 * @param name of the file, without its extension
	 * @throws ItemError if the file is too large, or n8n does not keep it
	 */
	private async store(
		opened: MediaAnswer,
		url: string,
		beginning: Buffer,
		name: string,
	): Promise<Try> {
		const { headers, body } = opened;
		const because = endingOf(opened, url);
		const tooLarge = () =>
			because(
				`The result is larger than ${Math.floor(this.maxBytes / 1024 ** 2)} MiB`,
				"Switch off 'Download Results' and use the result URLs.",
			);
		if (Number(headers['content-length']) > this.maxBytes) throw tooLarge();
		const path = isDataUri(url) ? '' : new URL(url).pathname;
		const mimeType = mediaTypeOf(beginning, headers['content-type'] ?? '', path);
		const fullName = [name, extensionFor(mimeType, path)].filter(Boolean).join('.');
		let bytes = 0;
		const count = (chunk: Uint8Array) => {
			bytes += chunk.length;
			if (bytes > this.maxBytes) throw new ItemError('The result is too large');
			return chunk;
		};
		const isWhole = Buffer.isBuffer(body) || body.readableEnded;
		if (isWhole && beginning.length > this.maxBytes) throw tooLarge();
		const counted = isWhole ? Buffer.from(count(beginning)) : body.map(count);
		const storing = settled(this.context.helpers.prepareBinaryData(counted, fullName, mimeType));
		const progress = () => (isWhole || body.readableEnded ? undefined : bytes);
		const stored = await unlessStalled(storing, progress, LEAST_BYTES_A_MINUTE, MINUTE_MS);
		if (bytes > this.maxBytes) throw tooLarge();
		const isRead = Buffer.isBuffer(counted) || counted.readableEnded;
		if (stored && 'error' in stored && (isRead || isStorageFull(stored.error))) {
			throw because(
				`n8n could not keep the result of ${Math.ceil(bytes / 1024 ** 2)} MiB`,
				explainStorage(stored.error),
			);
		}
		if (stored === undefined || 'error' in stored) return brokeOff(because, bytes);
		if (bytes > 0) return { file: stored.value };
		const empty = because(
			'The result is empty',
			'Read the task again later with the operation Get Task.',
		);
		return { trouble: empty, isOfLink: true };
	}
}

/** n8n's setting for the largest file in its database: 512 MiB by default, 1024 MiB at most. */
const DATABASE_LIMIT = 'N8N_BINARY_DATA_DATABASE_MAX_FILE_SIZE';

const isStorageFull = (error: unknown) =>
	error instanceof Error &&
	'code' in error &&
	['ENOSPC', 'EDQUOT', 'EROFS', 'EACCES'].includes(String(error.code));

/** The advice if the file arrived and n8n's own storage refused it. */
function explainStorage(error: unknown): string {
	const said = messageOf(error);
	const next = said.includes(DATABASE_LIMIT)
		? `Raise ${DATABASE_LIMIT} (in MiB, at most 1024), or set N8N_DEFAULT_BINARY_DATA_MODE to 'filesystem' or 's3': n8n keeps files in its database here, up to a limit.`
		: `n8n's storage of files did not take the file: ${said.slice(0, 200)}. See N8N_DEFAULT_BINARY_DATA_MODE.`;
	return `${next} ${AGAIN}`;
}
