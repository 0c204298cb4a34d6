import { TOKEN_PARAMETER } from '../shared/addresses';
import { parsedJson } from '../shared/json';
import { resultsIn } from './door';
import type { Service } from './services';

/** A key of at least this length is never in a text by chance. */
const MIN_TELLING_KEY = 12;

/** Includes a percent-encoded character before the digits, whose own digits could be taken for the token's. */
const ANY_HEX = /(%(?:25)?[0-9a-f]{2})?([0-9a-f]{64})/gi;

/**
 * A token of this package (64 hex digits), or n8n's token of a link to a file, behind the name of a token or a signature: as
 * the parameter of an address, as the key of an object, or beside its name in an object or a list; in any writing. A proxy
 * may have changed the path of our address, and a service may take the address apart. A name such as `X-Amz-Signature` is
 * that of a link to a file.
 */
const NAMED =
	/((?:(binary-data(?:\W|(?:25)*2F){1,16}signed(?:\W|(?:25)*3F){1,16})?token|(?<![-_])signature)(?:[\s"'\\:=[,]|u00[0-9a-f]{2}|%(?:25){0,2}[0-9a-f]{2}|&\w{2,4};|(?<=\\)[nrt]){1,64}(?:v(?:al(?:ue)?)?(?:[\s"'\\:=[,]|u00[0-9a-f]{2}|%(?:25){0,2}[0-9a-f]{2}|&\w{2,4};|(?<=\\)[nrt]){1,64})?)([0-9a-f]{64}(?![0-9a-f])|eyJ[\w-]+\.[\w-]+\.[\w-]+)/gi;

/** The same where the name stands behind the value. */
const NAMED_AFTER =
	/(?<=%(?:25){0,2}[0-9a-f]{2}|(?<![0-9a-f]))([0-9a-f]{64})(?=(?:[\s"'\\:=[,]|u00[0-9a-f]{2}|%(?:25){0,2}[0-9a-f]{2}|&\w{2,4};|(?<=\\)[nrt]){1,64}(?:n(?:ame)?|k(?:ey)?)(?:[\s"'\\:=[,]|u00[0-9a-f]{2}|%(?:25){0,2}[0-9a-f]{2}|&\w{2,4};|(?<=\\)[nrt]){1,64}token)/gi;

/**
 * Removes the API keys, and the tokens of callback addresses and of links to files, from what the service says: it may
 * repeat an address that it was given. Links to results keep theirs: without its signature a result cannot be downloaded.
 */
export class SecretRedactor {
	/** The tokens that were given out, which are found anywhere in a text. */
	private readonly known = new Set<string>();

	/**
	 * @param keys the API keys; others may be added to the list later
	 * @param service whose names the results have; the specification's by default
	 */
	constructor(
		private readonly keys: readonly string[],
		private readonly service?: Service,
	) {}

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
		// The links to results in the record, as JSON; an empty text if there are none.
		const links = () => JSON.stringify(resultsIn(parsedJson(text), this.service)) ?? '';
		return this.hide(text, keys, (secret) => (results ??= links()).includes(secret));
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
		const isKept = (secret: string) => isOfResult?.(secret) === true;
		return rest
			.replace(NAMED, (all, name: string, ours: string | undefined, secret: string) =>
				ours === undefined && isKept(secret) ? all : `${name}***`,
			)
			.replace(NAMED_AFTER, (secret) => (isKept(secret) ? secret : '***'));
	}
}
