import type { IBinaryData, IExecuteFunctions } from 'n8n-workflow';

import { attempt } from '../shared/attempt';
import { type Clock, systemClock } from '../shared/clock';
import { ItemError } from '../shared/itemError';
import { forbiddenAddress } from '../shared/requestError';
import { unlessStill } from './unlessStill';

/** Items whose results are downloaded at once: a slow media host takes no places of tasks. */
export const DOWNLOADS_AT_ONCE = 10;

export type Downloads = IBinaryData[];

/** Far above any picture or clip, and below what fills a disk overnight. */
export const MAX_DOWNLOAD_BYTES = 2 * 1024 ** 3;

/** Until the media host begins its answer, and until it goes on with it; the transfer as a whole may take longer. */
const HOST_TIMEOUT_MS = 60_000;

/** Types of media that services hand out, with the ending that their files get. */
const ENDINGS: Record<string, string> = {
	'image/png': 'png',
	'image/jpeg': 'jpg',
	'image/webp': 'webp',
	'image/gif': 'gif',
	'image/avif': 'avif',
	'video/mp4': 'mp4',
	'video/webm': 'webm',
	'video/quicktime': 'mov',
};

/** Types that a host names when it does not know any better. */
const UNTYPED = new Set(['', 'application/octet-stream', 'binary/octet-stream']);

/** Names that the files of many tasks share: a number, or what every result is. */
const NOT_TELLING =
	/^(image|img|picture|photo|video|clip|output|out|result|file|download|media|final|generated)?[-_ ]?\d{0,4}$/i;

/** The part of a Node.js stream that is used here; n8n forbids importing the module itself. */
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

/**
 * Downloads the results of a task as n8n's binary data, streamed: with n8n's file-system or S3 storage nothing is
 * held in memory. The media hosts get no API key.
 *
 * @param urls the result URLs
 * @param taskId names the files whose URL does not
 * @param maxBytes the largest result that is taken
 * @throws ItemError where a host is down, stands still, answers with something else, or a result is too large
 */
export async function download(
	context: IExecuteFunctions,
	urls: readonly string[],
	taskId: string,
	maxBytes = MAX_DOWNLOAD_BYTES,
	clock: Clock = systemClock,
): Promise<Downloads> {
	const downloads: Downloads = [];
	// One after the other: the tasks of a batch are already parallel.
	for (const [index, url] of urls.entries()) {
		downloads.push(
			await downloadOne(
				context,
				url,
				urls.length === 1 ? taskId : `${taskId}_${index}`,
				maxBytes,
				clock,
			),
		);
	}
	return downloads;
}

async function downloadOne(
	context: IExecuteFunctions,
	url: string,
	fallbackName: string,
	maxBytes: number,
	clock: Clock,
): Promise<IBinaryData> {
	const { statusCode, headers, body } = await open(context, url);
	const refuse = (what: string, next: string): never => {
		body.destroy();
		throw new ItemError(`${what}: ${url}`, { description: next });
	};
	if (statusCode < 200 || statusCode >= 300) {
		refuse(
			`The result could not be downloaded (HTTP ${statusCode})`,
			'The task is done and paid for. Its result URLs may have expired: read the task again with the operation Task → Get.',
		);
	}
	const type = (headers['content-type'] ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? '';
	if (type === 'text/html') {
		refuse(
			'The result host answered with a web page instead of media',
			'Open the URL in a browser to see what it says. The task is done and its result URLs are in the output.',
		);
	}
	const tooLarge = `The result is larger than ${Math.floor(maxBytes / 1024 ** 2)} MiB`;
	const tooLargeNext = "Switch off 'Download Results' and use the result URLs.";
	if (Number(headers['content-length']) > maxBytes) refuse(tooLarge, tooLargeNext);

	const { name, mimeType } = describeFile(url, type, fallbackName);
	let bytes = 0;
	const counted = body.map((chunk) => {
		bytes += chunk.length;
		if (bytes > maxBytes) throw new ItemError(tooLarge);
		return chunk;
	});
	const storing = attempt(
		async () => await context.helpers.prepareBinaryData(counted, name, mimeType),
	);
	const progress = () => (body.readableEnded ? undefined : bytes);
	const stored = await unlessStill(storing, progress, HOST_TIMEOUT_MS, clock);
	if (bytes > maxBytes) return refuse(tooLarge, tooLargeNext);
	if (stored === undefined || 'error' in stored) {
		if (stored && (counted.readableEnded || isStorageFull(stored.error))) {
			return refuse(
				`n8n could not keep the result of ${Math.ceil(bytes / 1024 ** 2)} MiB`,
				explainStorage(stored.error),
			);
		}
		return refuse(
			`The download broke off after ${bytes} bytes`,
			'The task is done and paid for: fetch it again with the operation Task → Get.',
		);
	}
	if (bytes === 0) {
		refuse('The result is empty', 'Read the task again later with the operation Task → Get.');
	}
	return stored.value;
}

/** n8n's setting for how large a file in its database may be: 512 MiB unless set otherwise, 1024 at most. */
const DATABASE_LIMIT = 'N8N_BINARY_DATA_DATABASE_MAX_FILE_SIZE';

/** Codes of a disk that takes no more. */
const isStorageFull = (error: unknown) =>
	error instanceof Error &&
	'code' in error &&
	['ENOSPC', 'EDQUOT', 'EROFS', 'EACCES'].includes(String(error.code));

/** What to do where the file came as a whole and n8n's own storage refused it. */
function explainStorage(error: unknown): string {
	const said = error instanceof Error ? error.message : String(error);
	const next = said.includes(DATABASE_LIMIT)
		? `n8n keeps files in its database here, up to a limit. Raise ${DATABASE_LIMIT} (in MiB, at most 1024), or keep files elsewhere: N8N_DEFAULT_BINARY_DATA_MODE is 'filesystem' or 's3'.`
		: `n8n's storage of files did not take it: ${said.slice(0, 200)}. See N8N_DEFAULT_BINARY_DATA_MODE.`;
	return `${next} The task is done and paid for, and its result URLs are in the output.`;
}

/** Opens a result's stream. Redirects are followed: they carry no key either. */
async function open(context: IExecuteFunctions, url: string): Promise<StreamResponse> {
	const response = await attempt(
		async () =>
			(await context.helpers.httpRequest({
				url,
				method: 'GET',
				encoding: 'stream',
				returnFullResponse: true,
				ignoreHttpStatusErrors: true,
				timeout: HOST_TIMEOUT_MS,
				abortSignal: context.getExecutionCancelSignal(),
			})) as StreamResponse,
	);
	if ('value' in response) return response.value;
	const forbidden = forbiddenAddress(
		response.error,
		`n8n does not let this node fetch the result: ${url}`,
	);
	if (forbidden !== undefined) throw forbidden;
	throw new ItemError(`The host of the result cannot be reached: ${url}`, {
		description:
			'The task is done and its result URLs are in the output. Download them later, or read the task again with the operation Task → Get.',
	});
}

/**
 * Names and types a file: by the response, then by the URL.
 *
 * @param type the media type that the host named, lower case, without parameters
 */
function describeFile(url: string, type: string, fallbackName: string) {
	const named = clean(lastSegment(url));
	const ending = /\.([a-z0-9]{2,5})$/i.exec(named)?.[1]?.toLowerCase();
	const typeOfEnding = Object.keys(ENDINGS).find((mime) => ENDINGS[mime] === ending);
	const mimeType = UNTYPED.has(type) ? (typeOfEnding ?? 'application/octet-stream') : type;
	const stem = ending === undefined ? named : named.slice(0, -ending.length - 1);
	const shownEnding = ending ?? ENDINGS[mimeType];
	const name = NOT_TELLING.test(stem) ? clean(fallbackName) : stem;
	return { name: shownEnding === undefined ? name : `${name}.${shownEnding}`, mimeType };
}

/** The last part of a URL's path. */
function lastSegment(url: string): string {
	try {
		return decodeURIComponent(new URL(url).pathname.split('/').pop() ?? '');
	} catch {
		return '';
	}
}

/** A file name without what a file system could take amiss. */
function clean(name: string): string {
	return name
		.replace(/[\p{Cc}"*/:<>?\\|]/gu, '_')
		.replace(/^\.+/, '')
		.slice(-120);
}
