import { createHmac } from 'node:crypto';

import { callbackAddress } from '../../../nodes/MediaGeneration/callback/callbackUrl';
import { callbackToken, isTokenValid } from '../../../nodes/MediaGeneration/callback/callbackToken';
const KEY = 'sk-live-secret';
const PATH = '/webhook/3f1c2a/callback';
const hmac = (path: string, key = KEY) => createHmac('sha256', key).update(path).digest('hex');

it('the token is the hex HMAC-SHA-256 of the path, keyed with the API key', () => {
	expect(callbackToken(PATH, KEY)).toBe(hmac(PATH));
});

describe('a callback address', () => {
	const url = `https://n8n.example.com${PATH}`;

	it.each([
		['a bare URL', url],
		['a URL with white space around it', ` ${url}\n`],
		['a URL that has a token already', `${url}?token=old`],
		['a URL that has two', `${url}?token=old&token=older`],
	])('made of %s has one token', (_what, given) => {
		expect(callbackAddress(given, KEY)).toBe(`${url}?token=${hmac(PATH)}`);
	});

	it('keeps the other parameters of the query, which the token does not cover', () => {
		expect(callbackAddress(`${url}?lane=2`, KEY)).toBe(`${url}?lane=2&token=${hmac(PATH)}`);
	});

	it('covers the path as it goes over the wire', () => {
		const encoded = callbackAddress('https://n8n.example.com/webhook/a b/callback', KEY);
		expect(encoded).toBe(
			`https://n8n.example.com/webhook/a%20b/callback?token=${hmac('/webhook/a%20b/callback')}`,
		);
	});

	it.each([
		['row 7'],
		['a&b=c#d?e'],
		['+ %20 "quotes"\nand a line'],
		['ü🙂'],
		['half of a character \uD83D'],
		['x'.repeat(500)],
	])('carries the reference %j under a token that covers both', (reference) => {
		const { pathname, searchParams } = new URL(callbackAddress(`${url}?lane=2`, KEY, reference));
		const carried = searchParams.get('reference') ?? '';
		expect(carried).toBe(reference.toWellFormed());
		expect(searchParams.get('token')).toBe(hmac(`${pathname}\n${carried}`));
		expect(searchParams.get('lane')).toBe('2');
	});

	it('made of one with a reference keeps it, unless there is another', () => {
		const first = callbackAddress(url, KEY, 'row 7');
		expect(callbackAddress(first, KEY)).toBe(first);
		expect(callbackAddress(first, KEY, 'row 8')).toBe(callbackAddress(url, KEY, 'row 8'));
	});

	it.each([
		['n8n.example.com/webhook', 'is not a valid address'],
		['', 'is not a valid address'],
		['ftp://n8n.example.com/webhook', 'is not a valid address'],
		['javascript:alert(1)', 'is not a valid address'],
	])('cannot be made of %j, which %s', (given, complaint) => {
		expect(() => callbackAddress(given, KEY)).toThrow(`The parameter 'Callback URL' ${complaint}`);
	});
});

describe('a token', () => {
	it('is valid for its path', () => {
		expect(isTokenValid(hmac(PATH), [PATH], KEY)).toBe(true);
	});

	it('is valid where one of the paths is its own', () => {
		expect(isTokenValid(hmac(PATH), ['/n8n/public', PATH], KEY)).toBe(true);
	});

	it('is valid without a look at the paths after the one that fits', () => {
		const asked: string[] = [];
		function* paths() {
			for (const path of [PATH, '/n8n/public']) {
				asked.push(path);
				yield path;
			}
		}
		expect(isTokenValid(hmac(PATH), paths(), KEY)).toBe(true);
		expect(asked).toEqual([PATH]);
	});

	it.each([
		['of another path', hmac('/webhook/other/callback')],
		['of another key', hmac(PATH, 'sk-live-other')],
		['in upper case', hmac(PATH).toUpperCase()],
		['with one character missing', hmac(PATH).slice(1)],
		['with one character more', `${hmac(PATH)}0`],
		['that is empty', ''],
		['as long in characters but not in bytes', 'ü'.repeat(64)],
		['that is not there', undefined],
		['that is there twice', [hmac(PATH), hmac(PATH)]],
		['that is an object', { 0: hmac(PATH) }],
	])('%s is not valid', (_what, token) => {
		expect(isTokenValid(token, [PATH], KEY)).toBe(false);
	});

	it('is valid for no path at all where there is none', () => {
		expect(isTokenValid(hmac(PATH), [], KEY)).toBe(false);
	});
});
