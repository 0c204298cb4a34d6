/** From this length on a key stands nowhere by chance. */
const MIN_TELLING_KEY = 12;

/** The query parameters with which a callback proves itself: this package's token, and n8n's signature. */
const PARAMETERS = ['token', 'signature'];

/** A token or a signature, 64 hex digits each, or n8n's token for a file, behind the name of its parameter. */
const SECRET =
	/((?:token|signature)(?:=|\\+u003d|%(?:25)?3D))(?:[0-9a-f]{64}|eyJ[\w-]+\.[\w-]+\.[\w-]+)/gi;

/** With the encoded sign that may stand before it, whose digits could be taken for its own. */
const ANY_HEX = /(%(?:25)?[0-9a-f]{2})?([0-9a-f]{64})/gi;

/**
 * Our addresses in a JSON text, each up to where its text ends, or another address begins: as they are, also with
 * escapes, or encoded within another address, once or twice. An address is ours that has the path of n8n's webhooks or
 * files, or that ends as the addresses of this package do.
 *
 * Each begins with a sign and not with a run of signs, so that the time grows with the length of the text, whatever the
 * text is: the service repeats what anybody wrote into a prompt. Each has an end, because a search without an end takes
 * more memory than JavaScript gives it. An address with the longest reference, encoded twice, has half that length.
 */
const ADDRESSES = [
	/\/(?:webhook(?:-test|-waiting)?\\*\/|callback\?|binary-data\\*\/signed\?)(?:(?!:\\*\/\\*\/)(?:[^\s"'<>`\\]|\\+(?:\/|u00[0-9a-f]{2}))){0,16384}/gi,
	/%2F(?:webhook(?:-test|-waiting)?%2F|callback%3F|binary-data%2Fsigned%3F)(?:(?!%3A%2F%2F)[\w.~%!*()+-]){0,16384}/gi,
	/%252F(?:webhook(?:-test|-waiting)?%252F|callback%253F|binary-data%252Fsigned%253F)(?:(?!%253A%252F%252F)[\w.~%!*()+-]){0,16384}/gi,
];

/**
 * Takes the API keys, and the tokens of callback addresses and of links to files, out of what the service says. A service
 * may repeat the address that it was given, and whoever reads it there could call back, or open the file. Other addresses
 * keep their tokens: a result without its signature cannot be fetched.
 */
export class SecretRedactor {
	/** Tokens that were given out: they are found wherever they stand. */
	private readonly known = new Set<string | null>();

	/** @param keys the API keys; others may be added to the list later */
	constructor(private readonly keys: readonly string[]) {}

	/** @param url an address that the service is given */
	add(url: string): void {
		const { searchParams } = new URL(url);
		for (const name of PARAMETERS) this.known.add(searchParams.get(name));
	}

	/** The same for a record: a short key, as test accounts have, may stand in a result URL by chance, and is left there. */
	hideInRecord(text: string): string {
		return this.hide(
			text,
			this.keys.filter(({ length }) => length >= MIN_TELLING_KEY),
		);
	}

	/** @returns the text, with `***` in place of each key, also as JSON writes it, and of each token */
	hide(text: string, keys = this.keys): string {
		const written = keys.flatMap((key) => {
			const json = JSON.stringify(key).slice(1, -1);
			return [key, json, json.replaceAll('/', '\\/')];
		});
		const keyless = written.reduce((left, key) => left.replaceAll(key, '***'), text);
		const rest = keyless.replace(ANY_HEX, (all, sign: string | undefined, hex: string) =>
			this.known.has(hex.toLowerCase()) ? `${sign ?? ''}***` : all,
		);
		return ADDRESSES.reduce(
			(left, ours) => left.replace(ours, (found) => found.replace(SECRET, '$1***')),
			rest,
		);
	}
}
