import { createHmac } from 'node:crypto';

import { callbackAddress, isOutOfReach } from '../../../nodes/MediaGeneration/callback/callbackUrl';
import { callbackToken, isTokenValid } from '../../../nodes/MediaGeneration/callback/callbackToken';

const KEY = 'sk-live-secret';
const PATH = '/webhook/3f1c2a/callback';
const URL_OF_TRIGGER = `https://n8n.example.com${PATH}`;
const hmac = (path: string, key = KEY) => createHmac('sha256', key).update(path).digest('hex');

describe('a callback address', () => {
	it.each([
		['a bare URL', URL_OF_TRIGGER],
		['a URL with white space around it', ` ${URL_OF_TRIGGER}\n`],
		['a URL that has a token already', `${URL_OF_TRIGGER}?token=old`],
		['a URL that has two', `${URL_OF_TRIGGER}?token=old&token=older`],
	])('made of %s has one token, the hex HMAC-SHA-256 of its path', (_what, given) => {
		expect(callbackAddress(given, KEY)).toBe(`${URL_OF_TRIGGER}?token=${hmac(PATH)}`);
	});

	it('keeps the other parameters of the query, and covers the path as it goes over the wire', () => {
		expect(callbackAddress('https://n8n.example.com/webhook/a b/callback?lane=2', KEY)).toBe(
			`https://n8n.example.com/webhook/a%20b/callback?lane=2&token=${hmac('/webhook/a%20b/callback')}`,
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
		const address = callbackAddress(`${URL_OF_TRIGGER}?lane=2`, KEY, reference);
		const { pathname, searchParams } = new URL(address);
		const carried = searchParams.get('reference') ?? '';
		expect(carried).toBe(reference.toWellFormed());
		expect(searchParams.get('token')).toBe(hmac(`${pathname}\n${carried}`));
		expect(searchParams.get('lane')).toBe('2');
	});

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
		['with one character more', `${hmac(PATH)}0`],
		['that is empty', ''],
		['as long in characters but not in bytes', 'ü'.repeat(64)],
		['that is not there', undefined],
		['that is there twice', [hmac(PATH), hmac(PATH)]],
		['that is an object', { 0: hmac(PATH) }],
	])('%s is not valid', (_what, token) => {
		expect(isTokenValid(token, PATH, KEY)).toBe(false);
	});
});

describe('a service on the internet', () => {
	it.each([
		'localhost:5678',
		'n8n.localhost',
		'127.0.0.1:5678',
		'0.0.0.0:5678',
		'[::1]:5678',
		'[fd12:3456::1]',
		'10.1.2.3',
		'172.16.0.1',
		'172.31.255.1',
		'192.168.1.20:5678',
		'169.254.1.1',
		'n8n:5678',
		'nas.local',
	])('cannot reach %s', (host) => {
		expect(isOutOfReach(`http://${host}${PATH}`, 'https://api.example.com/v1')).toBe(true);
	});

	it.each([
		'n8n.example.com',
		'localhost.example.com',
		'10.example.com',
		'172.32.0.1',
		'11.0.0.1',
		'[2001:db8::1]',
	])('can reach %s', (host) => {
		expect(isOutOfReach(`https://${host}${PATH}`, 'https://api.example.com/v1')).toBe(false);
	});
});

it.each(['http://localhost:4010', 'http://127.0.0.1:4010', 'http://service:4010/v1'])(
	'a service at %s, in the same machine or network, can reach localhost',
	(baseUrl) => {
		expect(isOutOfReach(`http://localhost:5678${PATH}`, baseUrl)).toBe(false);
	},
);
