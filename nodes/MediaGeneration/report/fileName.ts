/** The media types of results, with the file extensions for each, the usual one first. */
const TYPES: ReadonlyArray<[type: string, ...extensions: string[]]> = [
	['image/png', 'png'],
	['image/jpeg', 'jpg', 'jpeg'],
	['image/webp', 'webp'],
	['image/gif', 'gif'],
	['image/avif', 'avif'],
	['image/svg+xml', 'svg'],
	['image/tiff', 'tif', 'tiff'],
	['video/mp4', 'mp4', 'm4v'],
	['video/webm', 'webm'],
	['video/quicktime', 'mov'],
	['audio/mpeg', 'mp3'],
	['audio/wav', 'wav'],
	['audio/ogg', 'ogg', 'oga'],
	['audio/mp4', 'm4a'],
	['audio/flac', 'flac'],
];

/** The types that a host sends if it does not know the type. */
const UNTYPED = new Set(['', 'application/octet-stream', 'binary/octet-stream']);

/**
 * Gives a file its name and its type. The URL tells the type only if the host does not.
 *
 * @param type the media type from the host, in lower case, without parameters
 * @param stem the beginning of the name: the task id
 */
export function describeFile(url: string, type: string, stem: string) {
	const extension = /\.([a-z0-9]{2,5})$/i.exec(new URL(url).pathname)?.[1]?.toLowerCase();
	const [typeOfExtension] =
		TYPES.find(([, ...extensions]) => extensions.some((each) => each === extension)) ?? [];
	const typeOfUrl = /^\s*data:([^;,]+)/i.exec(url)?.[1]?.toLowerCase() ?? typeOfExtension;
	const mimeType = UNTYPED.has(type) ? (typeOfUrl ?? 'application/octet-stream') : type;
	const [, usual] = TYPES.find(([known]) => known === mimeType) ?? [];
	const usedExtension = usual ?? extension;
	// Without characters that a file system may refuse.
	const name = stem
		.replace(/[\p{Cc}"*/:<>?\\|]/gu, '_')
		.replace(/^\.+/, '')
		.slice(-120);
	return { name: usedExtension === undefined ? name : `${name}.${usedExtension}`, mimeType };
}
