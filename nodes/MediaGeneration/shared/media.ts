import { mapEntries, plainName } from './json';

/** The registered media types of results and of files that are sent, with their file extensions, the usual one first. */
const TYPES: ReadonlyArray<[type: string, ...extensions: string[]]> = [
	['image/png', 'png'],
	['image/jpeg', 'jpg', 'jpeg'],
	['image/webp', 'webp'],
	['image/gif', 'gif'],
	['image/avif', 'avif'],
	['image/heic', 'heic'],
	['image/svg+xml', 'svg'],
	['image/tiff', 'tif', 'tiff'],
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
	['audio/mp4', 'm4a'],
	['audio/flac', 'flac'],
];

/** Other names for these types. */
const OTHER_NAMES = new Map([
	['image/x-png', 'image/png'],
	['image/jpg', 'image/jpeg'],
	['image/pjpeg', 'image/jpeg'],
	['image/x-jpeg', 'image/jpeg'],
	['image/x-webp', 'image/webp'],
	['video/x-m4v', 'video/mp4'],
	['audio/mp3', 'audio/mpeg'],
	['audio/x-mp3', 'audio/mpeg'],
	['audio/wave', 'audio/wav'],
	['audio/x-wav', 'audio/wav'],
	['audio/vnd.wave', 'audio/wav'],
	['audio/x-m4a', 'audio/mp4'],
	['audio/x-flac', 'audio/flac'],
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
	['····ftypqt  ', 'video/quicktime'],
	['····ftypavi', 'image/avif'],
	['····ftyphei', 'image/heic'],
	['····ftypM4A', 'audio/mp4'],
	['····ftyp', 'video/mp4', 'audio/mp4', 'video/quicktime', 'image/heic'],
	['\x1aEß£', 'video/webm', 'audio/webm', 'video/x-matroska'],
	['ID3', 'audio/mpeg'],
	['ÿû', 'audio/mpeg'],
	['ÿó', 'audio/mpeg'],
	['ÿò', 'audio/mpeg'],
	['OggS', 'audio/ogg', 'video/ogg'],
	['fLaC', 'audio/flac'],
];

/** So many bytes tell what a file is. */
export const TELLING_BYTES = 16;

/** A media type in lower case, without its parameters, and under its registered name. */
export function registeredType(label: string): string {
	const type = label.split(';', 1)[0]?.trim().toLowerCase() ?? '';
	return OTHER_NAMES.get(type) ?? type;
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
	const [, ...types] = SIGNATURES.find(([begins]) => beginsWith(beginning, begins)) ?? [];
	// An audio file may begin as a video does.
	if (types.length > 0) return types.find((each) => each === type) ?? String(types[0]);
	if (isTelling(type)) return type;
	return typeOfExtension(extensionOf(name)) ?? 'application/octet-stream';
}

/** The extension of a file of a type; of a type that is not known, the extension that the name has. */
export function extensionFor(mimeType: string, name: string): string | undefined {
	const [, usual] = TYPES.find(([type]) => type === mimeType) ?? [];
	return usual ?? extensionOf(name);
}

const extensionOf = (name: string) => /\.([a-z0-9]{2,5})$/i.exec(name)?.[1]?.toLowerCase();

const typeOfExtension = (extension: string | undefined) =>
	TYPES.find(([, ...extensions]) => extensions.some((each) => each === extension))?.[0];

const beginsWith = (bytes: Uint8Array, begins: string): boolean =>
	bytes.length >= begins.length &&
	[...begins].every((sign, at) => sign === '·' || sign.charCodeAt(0) === bytes[at]);

/** Longer data URIs are cut in the output: the images of a batch would swell the data of the execution. */
const MAX_SHOWN_CHARACTERS = 4096;

/** How many characters of a long data URI are shown. */
const BEGINNING = 64;

/** Matches a data URI, and not a text whose first word is `Data:`. */
const DATA_URI = /^\s*data:([\w.+-]+\/|[;,])/i;

/** Deeper than any record; anything deeper is left as it is. */
const MAX_CUT_DEPTH = 32;

/**
 * A copy with long data URIs cut, except in the field `whole`, as `plainName` writes it: records repeat the images that were
 * sent.
 */
export function cutDataUris<T>(value: T, whole?: string, depth = 0): T {
	if (typeof value === 'string') return cutDataUri(value) as T;
	if (depth >= MAX_CUT_DEPTH) return value;
	return mapEntries(value, (entry, name = '') =>
		plainName(name) === whole ? entry : cutDataUris(entry, whole, depth + 1),
	) as T;
}

/** @returns the text, cut if it is a long data URI */
export function cutDataUri(text: string): string {
	if (text.length <= MAX_SHOWN_CHARACTERS || !DATA_URI.test(text)) return text;
	// The buffer makes a copy: a slice keeps the whole text in memory.
	const beginning = Buffer.from(text.slice(0, BEGINNING)).toString();
	return `${beginning}… (${text.length} characters)`;
}

/** Whether a text is a cut data URI: what an output shows of a file is not the file. */
export const isCutDataUri = (text: string): boolean =>
	DATA_URI.test(text) && /^[^…]{0,200}… \(.*\)$/s.test(text);
