import { type Clock, withTimeLimit } from '../shared/clock';

/** Between two looks whether a transfer goes on. */
const LOOK_MS = 5_000;

/**
 * Waits for a transfer, unless it stands still: n8n's timeout ends with the header of the answer, so nobody else would
 * ever give it up, and with it a run whose tasks are all paid for.
 *
 * @param transfer ends with the transfer
 * @param progress how much has come; undefined where all has
 * @param stillMs for so long nothing may come, milliseconds
 * @returns what the transfer brings; undefined where it stands still
 */
export async function unlessStalled<T extends object>(
	transfer: Promise<T>,
	progress: () => number | undefined,
	stillMs: number,
	clock: Clock,
): Promise<T | undefined> {
	for (let still = 0; still < stillMs;) {
		const before = progress();
		const ended = await withTimeLimit(transfer, LOOK_MS, clock);
		if (ended !== undefined) return ended;
		const now = progress();
		still = now === undefined || now !== before ? 0 : still + LOOK_MS;
	}
	return undefined;
}

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

/**
 * Names and types a file. The URL tells the type only where the host does not.
 *
 * @param type the media type that the host named, lower case, without parameters
 * @param stem what the file is named after: its task
 */
export function describeFile(url: string, type: string, stem: string) {
	const ending = /\.([a-z0-9]{2,5})$/i.exec(new URL(url).pathname)?.[1]?.toLowerCase();
	const typeOfEnding = Object.keys(ENDINGS).find((mime) => ENDINGS[mime] === ending);
	const mimeType = UNTYPED.has(type) ? (typeOfEnding ?? 'application/octet-stream') : type;
	const shownEnding = ENDINGS[mimeType] ?? ending;
	// Without what a file system could take amiss.
	const name = stem
		.replace(/[\p{Cc}"*/:<>?\\|]/gu, '_')
		.replace(/^\.+/, '')
		.slice(-120);
	return { name: shownEnding === undefined ? name : `${name}.${shownEnding}`, mimeType };
}
