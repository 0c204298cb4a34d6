/** The media types of results, with the file ending for each. */
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

/** The types that a host sends if it does not know the type. */
const UNTYPED = new Set(['', 'application/octet-stream', 'binary/octet-stream']);

/**
 * Gives a file its name and its type. The URL tells the type only if the host does not.
 *
 * @param type the media type from the host, in lower case, without parameters
 * @param stem the beginning of the name: the task id
 */
export function describeFile(url: string, type: string, stem: string) {
	const ending = /\.([a-z0-9]{2,5})$/i.exec(new URL(url).pathname)?.[1]?.toLowerCase();
	const typeOfEnding = Object.keys(ENDINGS).find((mime) => ENDINGS[mime] === ending);
	const typeOfUrl = /^\s*data:([^;,]+)/i.exec(url)?.[1]?.toLowerCase() ?? typeOfEnding;
	const mimeType = UNTYPED.has(type) ? (typeOfUrl ?? 'application/octet-stream') : type;
	const shownEnding = ENDINGS[mimeType] ?? ending;
	// Without characters that a file system may refuse.
	const name = stem
		.replace(/[\p{Cc}"*/:<>?\\|]/gu, '_')
		.replace(/^\.+/, '')
		.slice(-120);
	return { name: shownEnding === undefined ? name : `${name}.${shownEnding}`, mimeType };
}
