import {
	CALLBACK_PATH,
	isTokenValid,
	REFERENCE_PARAMETER,
	TOKEN_LENGTH,
	TOKEN_PARAMETER,
} from '../shared/addresses';

/** A key of at least this length is never in a text by chance. */
const MIN_TELLING_KEY = 12;

/** The end of the path of n8n's links to files. */
const FILE_NAME = 'signed';
const FILE_PATH = `/binary-data/${FILE_NAME}`;

/** Longer addresses are none of ours, and no record repeats more of ours. */
const MAX_ADDRESS_LENGTH = 4096;
const MOST_ADDRESSES = 100;

/** More creates are seldom under way at once. */
const MOST_TOKENS = 100;

/**
 * Removes what this package gave out from what the service says, which may repeat it: the API keys, the tokens of callback
 * addresses, and those of links to files. Nothing else is touched: without its signature a result cannot be downloaded.
 *
 * An answer may have 30 MB, so it is searched for texts that are known: the keys, the latest tokens, and those of the
 * addresses that it repeats, which another execution may have given out. Only the holder of the key can make such a token.
 */
export class SecretRedactor {
	/** The oldest first. */
	private readonly tokens = new Set<string>();

	/** @param keys the API keys; others may be added to the list later */
	constructor(private readonly keys: readonly string[]) {}

	/** @param token as it stands in the query of a callback address; anything else is left out */
	add(token: unknown): void {
		if (typeof token !== 'string' || token.length !== TOKEN_LENGTH) return;
		this.tokens.add(token);
		const [oldest = ''] = this.tokens;
		if (this.tokens.size > MOST_TOKENS) this.tokens.delete(oldest);
	}

	/**
	 * The same for a record. A short key, as test accounts have, may be part of a result URL by chance, and is left there.
	 */
	hideInRecord(text: string): string {
		return this.hide(
			text,
			this.keys.filter(({ length }) => length >= MIN_TELLING_KEY),
		);
	}

	/** @returns the text with `***` in place of each key (also as JSON or an address writes it) and each token */
	hide(text: string, keys = this.keys): string {
		const written = keys.filter((key) => text.includes(wordIn(key))).flatMap(writingsOf);
		const secrets = [...written, ...this.tokens, ...this.tokensIn(text)];
		return [...new Set(secrets)].reduce((left, secret) => left.replaceAll(secret, '***'), text);
	}

	/** The tokens of the addresses in a text that this package has given out, or another process of it. */
	private tokensIn(text: string): string[] {
		return [...addressesIn(text)].flatMap(({ pathname, searchParams }) => {
			const token = searchParams.get(TOKEN_PARAMETER);
			const reference = searchParams.get(REFERENCE_PARAMETER) ?? undefined;
			const isOurs = (key: string) => isTokenValid(token, pathname, key, reference);
			return token && (pathname.endsWith(FILE_PATH) || this.keys.some(isOurs)) ? [token] : [];
		});
	}
}

/** The longest part of a key that is written alike everywhere: to look for all writings takes four times as long. */
const wordIn = (key: string): string =>
	key.split(/[^\w-]/).reduce((longest, part) => (part.length > longest.length ? part : longest));

/** A key as a text, JSON or an address has it. */
function writingsOf(key: string): string[] {
	const json = JSON.stringify(key).slice(1, -1);
	return [key, json, json.replaceAll('/', '\\/'), encodeURIComponent(key)];
}

/** The addresses in a text whose path may be one of ours, and that have a query; JSON may have escaped them. */
function* addressesIn(text: string): Generator<URL> {
	let found = 0;
	for (let at = text.indexOf('?'); at >= 0; at = text.indexOf('?', at + 1)) {
		if (!text.endsWith(CALLBACK_PATH, at) && !text.endsWith(FILE_NAME, at)) continue;
		if (++found > MOST_ADDRESSES) return;
		const from = Math.max(0, at - MAX_ADDRESS_LENGTH);
		const begin = text.slice(from, at).lastIndexOf('http');
		if (begin < 0) continue;
		const [written = ''] = text.slice(from + begin, at + MAX_ADDRESS_LENGTH).split(/[\s"'<>]/, 1);
		const address = URL.parse(written.replaceAll('\\', '').replaceAll('u0026', '&'));
		if (address !== null) yield address;
	}
}
