import { parsedJson } from '../shared/json';
import { CALLBACK_PATH, SIGNED_FILE_PATH, TOKEN_PARAMETER } from '../shared/ownAddresses';
import { resultFieldOf } from './resultUrls';
import { findStated } from './taskId';

/** A key of at least this length is never in a text by chance. */
const MIN_TELLING_KEY = 12;

/** A token of this package (64 hex digits), or n8n's token for a file, after the name of its parameter. */
const SECRET = /(token(?:=|\\+u003d|%(?:25)?3D))(?:[0-9a-f]{64}|eyJ[\w-]+\.[\w-]+\.[\w-]+)/gi;

/** Includes a percent-encoded character before the digits, whose own digits could be taken for the token's. */
const ANY_HEX = /(%(?:25)?[0-9a-f]{2})?([0-9a-f]{64})/gi;

/**
 * 64 hex digits behind the name of a token or a signature: as the parameter of an address or as the key of an object, in
 * any writing. A proxy may have changed the path of our address, and a service may take the address apart. A name such as
 * `X-Amz-Signature` is that of a link to a file.
 */
const NAMED =
	/((?:token|(?<![-_])signature)(?:[\s"'\\:=[]|u00[0-9a-f]{2}|%(?:25){0,2}[0-9a-f]{2}|&\w{2,4};){1,16})([0-9a-f]{64})(?![0-9a-f])/gi;

/** The addresses that this package gives out end in one of these paths. */
const PATHS = [CALLBACK_PATH, SIGNED_FILE_PATH];

/**
 * The rest of an address from its query on: plain or with escapes, encoded once, or twice. It ends where the text ends, or
 * another address begins. It has a largest length, because a search without an end takes more memory than JavaScript gives.
 * Our longest address, encoded twice, has half that length.
 */
const PLAIN_REST =
	/(?:(?!:\\{0,15}\/\\{0,15}\/)(?:[^\s"'<>`\\]|\\{1,15}(?:\/|u00[0-9a-f]{2}))){0,16384}/giy;
const ENCODED_REST = /(?:(?!%3A%2F%2F)[\w.~%!*()+-]){0,16384}/giy;
const TWICE_ENCODED_REST = /(?:(?!%253A%252F%252F)[\w.~%!*()+-]){0,16384}/giy;

/** How a text writes the signs of an address: as it is, as JSON in JSON, or encoded within another address. */
const WRITINGS: Array<[slash: string, query: string, rest: RegExp]> = [
	['/', '?', PLAIN_REST],
	['\\/', '?', PLAIN_REST],
	['\\\\\\/', '?', PLAIN_REST],
	['%2F', '%3F', ENCODED_REST],
	['%2f', '%3f', ENCODED_REST],
	['%252F', '%253F', TWICE_ENCODED_REST],
	['%252f', '%253f', TWICE_ENCODED_REST],
];

/** How our addresses go on after their host, up to their query, in each writing. */
const OURS = PATHS.flatMap((path) =>
	WRITINGS.map(([slash, query, rest]) => ({
		path: slash + path.replaceAll('/', slash) + query,
		rest,
	})),
);

/** Hides the secrets of the addresses that go on like this, in a time that grows with the text alone. */
function hideBehind(text: string, path: string, rest: RegExp): string {
	const parts: string[] = [];
	let done = 0;
	for (let at = text.indexOf(path); at >= 0; at = text.indexOf(path, done)) {
		rest.lastIndex = at + path.length;
		const [query = ''] = rest.exec(text) ?? [];
		const end = at + path.length + query.length;
		parts.push(text.slice(done, end - query.length), query.replace(SECRET, '$1***'));
		done = end;
	}
	return parts.join('') + text.slice(done);
}

/** The links to results in a record, as JSON; an empty text if there are none. */
const resultsIn = (text: string): string => {
	const stated = findStated(parsedJson(text));
	return (stated && JSON.stringify(resultFieldOf(stated))) ?? '';
};

/**
 * Removes the API keys, and the tokens of callback addresses and of links to files, from what the service says: it may
 * repeat an address that it was given. Links to results keep theirs: without its signature a result cannot be downloaded.
 */
export class SecretRedactor {
	/** The tokens that were given out, which are found anywhere in a text. */
	private readonly known = new Set<string>();

	/** @param keys the API keys; others may be added to the list later */
	constructor(private readonly keys: readonly string[]) {}

	/** @param url an address that is sent to the service */
	add(url: string): void {
		this.addToken(new URL(url).searchParams.get(TOKEN_PARAMETER));
	}

	/** @param token as it stands in the query of an address; anything but a text is no token */
	addToken(token: unknown): void {
		if (typeof token === 'string') this.known.add(token.toLowerCase());
	}

	/**
	 * The same for a record. A short key, as test accounts have, may be part of a result URL by chance, and is left there.
	 */
	hideInRecord(text: string): string {
		const keys = this.keys.filter(({ length }) => length >= MIN_TELLING_KEY);
		let results: string | undefined;
		return this.hide(text, keys, (secret) => (results ??= resultsIn(text)).includes(secret));
	}

	/**
	 * @param isOfResult whether a value is needed to download a result; none is if left out
	 * @returns the text with `***` in place of each key (also as JSON or an address writes it) and each token
	 */
	hide(text: string, keys = this.keys, isOfResult?: (secret: string) => boolean): string {
		const written = keys.flatMap((key) => {
			const json = JSON.stringify(key).slice(1, -1);
			return [key, json, json.replaceAll('/', '\\/'), encodeURIComponent(key)];
		});
		// Most keys are written alike everywhere.
		const texts = [...new Set(written)];
		const keyless = texts.reduce((left, key) => left.replaceAll(key, '***'), text);
		const rest = keyless.replace(ANY_HEX, (all, sign: string | undefined, hex: string) =>
			this.known.has(hex.toLowerCase()) ? `${sign ?? ''}***` : all,
		);
		const nameless = rest.replace(NAMED, (all, name: string, secret: string) =>
			isOfResult?.(secret) ? all : `${name}***`,
		);
		return OURS.reduce((left, ours) => hideBehind(left, ours.path, ours.rest), nameless);
	}
}
