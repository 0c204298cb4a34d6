/** A key of at least this length is never in a text by chance. */
const MIN_TELLING_KEY = 12;

/** The query parameters that prove a callback: this package's token, and n8n's signature. */
const PARAMETERS = ['token', 'signature'];

/** A token or a signature (64 hex digits each), or n8n's token for a file, after the name of its parameter. */
const SECRET =
	/((?:token|signature)(?:=|\\+u003d|%(?:25)?3D))(?:[0-9a-f]{64}|eyJ[\w-]+\.[\w-]+\.[\w-]+)/gi;

/** Includes a percent-encoded character before the digits, whose own digits could be taken for the token's. */
const ANY_HEX = /(%(?:25)?[0-9a-f]{2})?([0-9a-f]{64})/gi;

/**
 * Our addresses in a JSON text: plain, with escapes, or encoded once or twice within another address. An address is ours
 * if it has the path of n8n's webhooks or files, or ends as the addresses of this package do. Each match ends where the
 * text ends, or another address begins.
 *
 * Each pattern begins with a single character and not with a repetition, so that the time grows linearly with the text:
 * the service repeats what anybody wrote into a prompt. Each pattern has a largest length, because a search without an
 * end takes more memory than JavaScript gives. Our longest address, encoded twice, has half that length.
 */
const ADDRESSES = [
	/\/(?:webhook(?:-test|-waiting)?\\*\/|callback\?|binary-data\\*\/signed\?)(?:(?!:\\*\/\\*\/)(?:[^\s"'<>`\\]|\\+(?:\/|u00[0-9a-f]{2}))){0,16384}/gi,
	/%2F(?:webhook(?:-test|-waiting)?%2F|callback%3F|binary-data%2Fsigned%3F)(?:(?!%3A%2F%2F)[\w.~%!*()+-]){0,16384}/gi,
	/%252F(?:webhook(?:-test|-waiting)?%252F|callback%253F|binary-data%252Fsigned%253F)(?:(?!%253A%252F%252F)[\w.~%!*()+-]){0,16384}/gi,
];

/**
 * Removes the API keys, and the tokens of callback addresses and of links to files, from what the service says: it may
 * repeat an address that it was given. Other addresses keep their tokens: without its signature a result cannot be
 * downloaded.
 */
export class SecretRedactor {
	/** The tokens that were given out, which are found anywhere in a text. */
	private readonly known = new Set<string | null>();

	/** @param keys the API keys; others may be added to the list later */
	constructor(private readonly keys: readonly string[]) {}

	/** @param url an address that is sent to the service */
	add(url: string): void {
		const { searchParams } = new URL(url);
		for (const name of PARAMETERS) this.known.add(searchParams.get(name));
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
		return ADDRESSES.reduce(
			(left, ours) => left.replace(ours, (found) => found.replace(SECRET, '$1***')),
			rest,
		);
	}
}
