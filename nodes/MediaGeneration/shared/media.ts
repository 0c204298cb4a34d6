import { mapEntries, plainName } from './json';

/** The registered media types of results and of files that are sent, with their file extensions, the usual one first. */
const TYPES: ReadonlyArray<[type: string, ...extensions: string[]]> = [
	['image/png', 'png'],
	['image/jpeg', 'jpg', 'jpeg'],
	['image/webp', 'webp'],
	['image/gif', 'gif'],
	['image/avif', 'avif'],
	['image/heic', 'heic'],
	['image/heif', 'heif'],
	['image/svg+xml', 'svg'],
	['image/tiff', 'tif', 'tiff'],
	['image/bmp', 'bmp'],
	['video/mp4', 'mp4', 'm4v'],
	['image/apng', 'apng'],
	['video/webm', 'webm'],
	['audio/webm', 'webm'],
	['video/x-matroska', 'mkv'],
	['video/ogg', 'ogv'],
	['video/quicktime', 'mov'],
	['audio/mpeg', 'mp3'],
	['audio/wav', 'wav'],
	['audio/ogg', 'ogg', 'oga'],
	['audio/opus', 'opus'],
	['audio/mp4', 'm4a'],
	['audio/aac', 'aac'],
	['audio/flac', 'flac'],
	['model/gltf-binary', 'glb'],
	['model/gltf+json', 'gltf'],
	['model/obj', 'obj'],
	['model/stl', 'stl'],
	['model/vnd.usdz+zip', 'usdz'],
	['application/pdf', 'pdf'],
	['application/zip', 'zip'],
	['application/json', 'json'],
	['application/x-subrip', 'srt'],
	['text/vtt', 'vtt'],
	['text/csv', 'csv'],
	['text/html', 'html', 'htm'],
	['text/markdown', 'md'],
	['text/plain', 'txt'],
];

/** Other names for these types, which may have an `x-` before them. */
const OTHER_NAMES = new Map([
	['image/jpg', 'image/jpeg'],
	['image/pjpeg', 'image/jpeg'],
	['image/ms-bmp', 'image/bmp'],
	['video/m4v', 'video/mp4'],
	['audio/mp3', 'audio/mpeg'],
	['audio/wave', 'audio/wav'],
	['audio/vnd.wave', 'audio/wav'],
	['audio/m4a', 'audio/mp4'],
	['audio/aacp', 'audio/aac'],
	['application/zip-compressed', 'application/zip'],
	['application/srt', 'application/x-subrip'],
	['text/srt', 'application/x-subrip'],
]);

/** Labels that do not tell what a file is. */
const UNTYPED = ['', 'application/octet-stream', 'binary/octet-stream'];

/** Whether a label tells what a file is. */
export const isTelling = (label: string): boolean => !UNTYPED.includes(registeredType(label));

/** How files begin, as Latin-1, with `·` for any byte; and the types that begin like this, the usual one first. */
const SIGNATURES: ReadonlyArray<[beginning: string, ...types: string[]]> = [
	['\x89PNG\r\n\x1a\n', 'image/png', 'image/apng'],
	['ÿØÿ', 'image/jpeg'],
	['RIFF····WEBP', 'image/webp'],
	['RIFF····WAVE', 'audio/wav'],
	['GIF8', 'image/gif'],
	['II*\0', 'image/tiff'],
	['MM\0*', 'image/tiff'],
	['BM····\0\0\0\0', 'image/bmp'],
	['····ftypavi', 'image/avif'],
	['····ftyphe', 'image/heic', 'image/heif'],
	// These brands say only that a file has pictures.
	['····ftypmif1', 'image/heif', 'image/heic', 'image/avif'],
	['····ftypmsf1', 'image/heif', 'image/heic', 'image/avif'],
	['····ftypqt  ', 'video/quicktime'],
	['····ftypM4A', 'audio/mp4'],
	['····ftyp', 'video/mp4', 'audio/mp4', 'video/quicktime', 'image/heic'],
	// QuickTime files of old begin with one of their parts.
	['····wide', 'video/quicktime'],
	['····moov', 'video/quicktime', 'video/mp4'],
	['····mdat', 'video/quicktime', 'video/mp4'],
	['\x1aEß£', 'video/webm', 'audio/webm', 'video/x-matroska'],
	['ID3', 'audio/mpeg'],
	['ÿû', 'audio/mpeg'],
	['ÿó', 'audio/mpeg'],
	['ÿò', 'audio/mpeg'],
	['ÿñ', 'audio/aac'],
	['ÿù', 'audio/aac'],
	['OggS', 'audio/ogg', 'video/ogg', 'audio/opus'],
	['fLaC', 'audio/flac'],
	['glTF', 'model/gltf-binary'],
	['%PDF-', 'application/pdf'],
];

/** Many kinds of files are archives, so their label tells more. */
const ZIP = 'PK\u0003\u0004';

/** So many bytes tell what a file is: an SVG may begin with a comment. */
export const TELLING_BYTES = 512;

/** A media type in lower case, without its parameters, and under its registered name. */
export function registeredType(label: string): string {
	const type = label.split(';', 1)[0]?.trim().toLowerCase() ?? '';
	const plain = type.replace('/x-', '/');
	const isListed = TYPES.some(([listed]) => listed === plain);
	return OTHER_NAMES.get(plain) ?? (isListed ? plain : type);
}

/**
 * What a file is: by its first bytes, then by its label, then by its name.
 *
 * @param beginning the first bytes of the file
 * @param label the media type that came with the file
 * @param name the name of the file, or the path of its address
 */
export function mediaTypeOf(beginning: Uint8Array, label: string, name: string): string {
	const type = registeredType(label);
	const types = typesOf(beginning);
	// An audio file may begin as a video does.
	if (types.length > 0) return types.find((each) => each === type) ?? String(types[0]);
	// A plain text may be a file of subtitles, and n8n calls whatever it does not know a plain text.
	const isPlain = type === 'text/plain';
	if (isTelling(type) && !isPlain) return type;
	const byName = typeOfExtension(extensionOf(name));
	if (byName !== undefined || isPlain) return byName ?? type;
	return beginsWith(beginning, ZIP) ? 'application/zip' : 'application/octet-stream';
}

/** The types that a file may have by its first bytes, the usual one first; none if the bytes do not tell. */
export function typesOf(beginning: Uint8Array): string[] {
	const [, ...types] = SIGNATURES.find(([begins]) => beginsWith(beginning, begins)) ?? [];
	if (types.length > 0) return types;
	const text = Buffer.from(beginning.subarray(0, TELLING_BYTES)).toString('latin1');
	const isSvg = /^\W*<(?:svg|\?xml|!)/i.test(text) && /<svg[\s>]/i.test(text);
	return isSvg && !/<html|<!doctype html/i.test(text) ? ['image/svg+xml'] : [];
}

/** The extension of a file of a type; of a type that is not known, the extension that the name has, or the type's own name. */
export function extensionFor(mimeType: string, name: string): string | undefined {
	const [, usual] = TYPES.find(([type]) => type === mimeType) ?? [];
	const [, ownName] = /\/(?:x-)?([a-z0-9]{2,5})$/.exec(mimeType) ?? [];
	return usual ?? extensionOf(name) ?? ownName;
}

const extensionOf = (name: string) => /\.([a-z0-9]{2,5})$/i.exec(name)?.[1]?.toLowerCase();

const typeOfExtension = (extension: string | undefined) =>
	TYPES.find(([, ...extensions]) => extensions.some((each) => each === extension))?.[0];

const beginsWith = (bytes: Uint8Array, begins: string): boolean =>
	bytes.length >= begins.length &&
	[...begins].every((sign, at) => sign === '·' || sign.charCodeAt(0) === bytes[at]);

/** Longer files are cut in the output: the images of a batch would swell the data of the execution. */
const MAX_SHOWN_CHARACTERS = 4096;

const BEGINNING = 64;

/** Matches a data URI, and not a text whose first word is `Data:`. */
const DATA_URI = /^\s*data:([\w.+-]+\/|[;,])/i;

export const isDataUri = (text: string): boolean => DATA_URI.test(text);

/** Deeper than any record; anything deeper is left as it is. */
const MAX_CUT_DEPTH = 32;

/**
 * A copy with files cut, that is long data URIs and long base64, except in the field `whole`, as `plainName` writes it:
 * records repeat the images that were sent.
 */
export function cutDataUris<T>(value: T, whole?: string, depth = 0): T {
	if (typeof value === 'string') return cutDataUri(value) as T;
	if (depth >= MAX_CUT_DEPTH) return value;
	return mapEntries(value, (entry, name = '') =>
		plainName(name) === whole ? entry : cutDataUris(entry, whole, depth + 1),
	) as T;
}

/** @returns the text, cut if it is a long data URI or long base64 */
export function cutDataUri(text: string): string {
	const isLong = text.length > MAX_SHOWN_CHARACTERS;
	return isLong && (DATA_URI.test(text) || isBase64File(text)) ? cutAt(BEGINNING, text) : text;
}

function cutAt(most: number, text: string): string {
	// The buffer makes a copy: a slice keeps the whole text in memory.
	const beginning = Buffer.from(text.slice(0, most)).toString();
	return `${beginning}… (${text.length} characters)`;
}

/** Whether a text is a cut file: what an output shows of a file is not the file. */
export const isCutDataUri = (text: string): boolean =>
	/^(?:\s*data:(?:[\w.+-]+\/|[;,])[^…]{0,200}|[\w+/-]{64})… \(.*\)$/is.test(text);

/** How much is repeated in a message of what the service sent, characters. */
const MAX_QUOTED = 500;

/**
 * A text of the service as messages repeat it. This is the one place that cuts such a text: a message of 100,000
 * characters helps nobody, and n8n stores it with the execution.
 *
 * @returns the text, cut if it is long; of a file less is shown
 */
export function quoted(text: string, most = MAX_QUOTED): string {
	const short = cutDataUri(text);
	return short.length > most ? cutAt(most, short) : short;
}

/** Whether a text may be base64, also in the alphabet for addresses, and in lines. */
export const isBase64 = (text: string): boolean => /^[\w+/\r\n-]+={0,2}$/.test(text.trim());

/** Shorter base64 is not told from a word or a path. */
const LEAST_BASE64 = 64;

/** Base64 of so many characters has letters of both sizes and digits, also if nobody knows how such a file begins. */
const LONG_BASE64 = 1024;

/** Whether a text, of which nothing else is known, is a file in base64. */
export function isBase64File(text: string): boolean {
	if (text.length < LEAST_BASE64 || !isBase64(text)) return false;
	const isMixed = /[a-z]/.test(text) && /[A-Z]/.test(text) && /\d/.test(text);
	if (text.length >= LONG_BASE64 && isMixed) return true;
	return typesOf(Buffer.from(text.slice(0, LONG_BASE64), 'base64')).length > 0;
}
