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

/**
 * Names and types a file: by the response, then by the URL.
 *
 * @param type the media type that the host named, lower case, without parameters
 */
export function describeFile(url: string, type: string, fallbackName: string) {
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
