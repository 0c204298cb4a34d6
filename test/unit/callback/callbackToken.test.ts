import { createHmac } from 'node:crypto';

import { callbackAddress } from '../../../nodes/MediaGeneration/callback/callbackAddress';
import { callbackToken, isTokenValid } from '../../../nodes/MediaGeneration/shared/addresses';

const KEY = 'sk-live-secret';
const PATH = '/webhook/3f1c2a/callback';
const URL_OF_TRIGGER = `https://n8n.example.com${PATH}`;
const hmac = (path: string, key = KEY) => createHmac('sha256', key).update(path).digest('hex');

describe('a callback address', () => {
	it.each([
		['a bare URL', URL_OF_TRIGGER],
		['a URL with white space around it', ` ${URL_OF_TRIGGER}\n`],
		['a URL that has two tokens already', `${URL_OF_TRIGGER}?token=old&token=older`],
	])('made of %s has one token, the hex HMAC-SHA-256 of its path', (_what, given) => {
		expect(callbackAddress(given, KEY)).toBe(`${URL_OF_TRIGGER}?token=${hmac(PATH)}`);
	});

	it('keeps the other parameters of the query, and covers the path as it goes over the wire', () => {
		expect(callbackAddress('https://n8n.example.com/webhook/a b/callback?lane=2', KEY)).toBe(
			`https://n8n.example.com/webhook/a%20b/callback?lane=2&token=${hmac('/webhook/a%20b/callback')}`,
		);
	});

	it.each([['a&b=c#d?e'], ['+ %20 "quotes"\nand a line'], ['half of a character \uD83D']])(
		'carries the reference %j under a token that covers both',
		(reference) => {
			const address = callbackAddress(`${URL_OF_TRIGGER}?lane=2`, KEY, reference);
			const { pathname, searchParams } = new URL(address);
			const carried = searchParams.get('reference') ?? '';
			expect(carried).toBe(reference.toWellFormed());
			expect(searchParams.get('token')).toBe(hmac(`${pathname}\n${carried}`));
			expect(searchParams.get('lane')).toBe('2');
		},
	);

	it('made of one with a reference keeps it, unless there is another', () => {
		const first = callbackAddress(URL_OF_TRIGGER, KEY, 'row 7');
		expect(callbackAddress(first, KEY)).toBe(first);
		const second = callbackAddress(URL_OF_TRIGGER, KEY, 'row 8');
		expect(callbackAddress(first, KEY, 'row 8')).toBe(second);
	});

	it.each(['n8n.example.com/webhook', '', 'ftp://n8n.example.com/webhook', 'javascript:alert(1)'])(
		'cannot be made of %j',
		(given) => {
			const message = "The parameter 'Callback URL' is not a valid address";
			expect(() => callbackAddress(given, KEY)).toThrow(message);
		},
	);

	it('that is not valid is shown without its token', () => {
		const given = callbackAddress(URL_OF_TRIGGER, KEY).replace('https://', '');
		expect(() => callbackAddress(given, KEY)).toThrow(/address: '[^'?]+'$/);
	});
});

describe('a token', () => {
	it('is valid for its path', () => {
		expect(callbackToken(PATH, KEY)).toBe(hmac(PATH));
		expect(isTokenValid(hmac(PATH), PATH, KEY)).toBe(true);
	});

	it.each([
		['of another path', hmac('/webhook/other/callback')],
		['of another key', hmac(PATH, 'sk-live-other')],
		['in upper case', hmac(PATH).toUpperCase()],
		['with one character missing', hmac(PATH).slice(1)],
		['as long in characters but not in bytes', 'ü'.repeat(64)],
		['that is not there', undefined],
		['that is there twice', [hmac(PATH), hmac(PATH)]],
	])('%s is not valid', (_what, token) => {
		expect(isTokenValid(token, PATH, KEY)).toBe(false);
	});
});
