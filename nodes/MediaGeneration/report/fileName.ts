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
	const typeOfUrl = /^\s*data:([^;,]+)/i.exec(url)?.[1]?.toLowerCase() ?? typeOfEnding;
	const mimeType = UNTYPED.has(type) ? (typeOfUrl ?? 'application/octet-stream') : type;
	const shownEnding = ENDINGS[mimeType] ?? ending;
	// Without what a file system could take amiss.
	const name = stem
		.replace(/[\p{Cc}"*/:<>?\\|]/gu, '_')
		.replace(/^\.+/, '')
		.slice(-120);
	return { name: shownEnding === undefined ? name : `${name}.${shownEnding}`, mimeType };
}
