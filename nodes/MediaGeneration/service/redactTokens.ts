/** The query parameters with which a callback proves itself: this package's token, and n8n's signature. */
const PARAMETERS = ['token', 'signature'];

/** An HMAC, as both are. */
const HEX = '[0-9a-f]{64}';

/** Where n8n serves webhooks, unless it is set up otherwise; and how the addresses of this package's nodes end. */
const OURS = ['/webhook/', '/webhook-test/', '/webhook-waiting/', '/callback?'];

const SECRET = new RegExp(`((?:${PARAMETERS.join('|')})(?:=|\\\\+u003d|%(?:25)?3D))${HEX}`, 'gi');

/** With the encoded sign that may stand before it, whose digits could be taken for its own. */
const ANY_HEX = new RegExp(`(%(?:25)?[0-9a-f]{2})?(${HEX})`, 'gi');

const plain = (path: string) => path.replace('?', '\\?').replaceAll('/', '\\\\*/');
const encoded = (path: string) => encodeURIComponent(path);

/** Our addresses in a JSON text: as they are, also with escapes, or encoded within another, once or twice. */
const ADDRESSES = [
	// Each up to where its text ends, or another address begins.
	address(plain, String.raw`(?!:\\*/\\*/)(?:[^\s"'<>\x60\\]|\\+(?:/|u00[0-9a-f]{2}))`),
	address(encoded, String.raw`(?!%3A%2F%2F)[\w.~%!*()+-]`),
	address((path) => encoded(encoded(path)), String.raw`(?!%253A%252F%252F)[\w.~%!*()+-]`),
];

function address(write: (path: string) => string, sign: string): RegExp {
	return new RegExp(`(?:${OURS.map(write).join('|')})(?:${sign})*`, 'gi');
}

/**
 * Takes the tokens of callback addresses out of what the service says. A service may repeat the address that it was
 * given, and whoever reads it there could call back. Other addresses keep their tokens: a result without its
 * signature cannot be fetched.
 */
export class CallbackTokens {
	/** Those that were given out: they are found wherever they stand. */
	private readonly known = new Set<string | null>();

	/** @param url an address that the service is given */
	add(url: string): void {
		const { searchParams } = new URL(url);
		for (const name of PARAMETERS) this.known.add(searchParams.get(name));
	}

	/** @returns the text, with `***` in place of each token */
	hide(text: string): string {
		const rest = text.replace(ANY_HEX, (all, sign: string | undefined, hex: string) =>
			this.known.has(hex.toLowerCase()) ? `${sign ?? ''}***` : all,
		);
		return ADDRESSES.reduce(
			(left, ours) => left.replace(ours, (found) => found.replace(SECRET, '$1***')),
			rest,
		);
	}
}
