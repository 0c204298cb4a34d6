import { BinaryDataService } from 'n8n-core';
import { type INode, NodeHelpers } from 'n8n-workflow';

import { callbackAddress } from '../../../nodes/MediaGeneration/callback/callbackAddress';
import { MediaGeneration } from '../../../nodes/MediaGeneration/MediaGeneration.node';
import { MediaGenerationCredits } from '../../../nodes/MediaGeneration/MediaGenerationCredits.node';
import { MediaGenerationTrigger } from '../../../nodes/MediaGeneration/MediaGenerationTrigger.node';
import { SecretRedactor } from '../../../nodes/MediaGeneration/service/redactSecrets';
import { executeContext } from '../../workflow/engine';

const TOKEN = 'a1'.repeat(32);
const OTHER = 'b2'.repeat(32);
const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
const FILE_TOKEN = `${part({ alg: 'HS256', typ: 'JWT' })}.${part({ id: 'filesystem-v2:1', exp: 1 })}.a-b_${'c'.repeat(39)}`;

const TRIGGER = `https://n8n.example.com/webhook/3f1c2a/callback?token=${TOKEN}`;
const LINK = `https://n8n.example.com/rest/binary-data/signed?token=${FILE_TOKEN}`;

const hidden = (value: unknown, ...sent: string[]) => {
	const secrets = new SecretRedactor([]);
	for (const address of sent) secrets.add(address);
	return secrets.hide(typeof value === 'string' ? value : JSON.stringify(value));
};
const without = (text: string) =>
	[TOKEN, FILE_TOKEN].reduce((rest, secret) => rest.replaceAll(secret, '***'), text);

/** As what a service, or a log, writes may hold an address. */
const WRITINGS: Array<(text: string) => string> = [
	(text) => text,
	JSON.stringify,
	(text) => JSON.stringify({ request: JSON.stringify({ webhook_url: text }) }),
	(text) => JSON.stringify(JSON.stringify({ image_url: text })),
	(text) => text.replaceAll('/', '\\/'),
	(text) => text.replaceAll('=', '\\u003d'),
	(text) => text.replaceAll('&', '\\u0026').replaceAll('=', '\\u003d'),
	(text) => text.replaceAll('&', '\\\\u0026'),
	(text) => text.replaceAll('&', '&amp;'),
	(text) => `Callback to <${text}> failed`,
	(text) => `https://log.example.com/?to=${encodeURIComponent(text)}`,
	(text) => encodeURIComponent(encodeURIComponent(text)),
	(text) => encodeURIComponent(text).replace(/%[0-9A-F]{2}/g, (code) => code.toLowerCase()),
];

describe('an address of n8n', () => {
	it.each([
		['of a trigger', TRIGGER],
		['of a test event', TRIGGER.replace('webhook', 'webhook-test')],
		['behind a prefix', TRIGGER.replace('/webhook/', '/n8n/webhook/')],
		['of an n8n that serves its webhooks elsewhere', TRIGGER.replace('/webhook/', '/hooks/')],
		['with a reference before it', TRIGGER.replace('?', '?reference=order%2017%26x&')],
		['with an address as a reference', TRIGGER.replace('?', '?reference=https%3A%2F%2Fshop%2F17&')],
		['with a reference after it', `${TRIGGER}&reference=row-17`],
		['of a file', LINK],
	])('%s loses its token, and nothing else', (_what, address) => {
		const bare = without(address);
		expect(bare).not.toBe(address);
		for (const write of WRITINGS) {
			expect(hidden(write(address))).toBe(write(bare).replaceAll('%2A', '*'));
		}
	});

	it('loses it in upper case digits, and cut off at its end, too', () => {
		expect(hidden(TRIGGER.replace(TOKEN, TOKEN.toUpperCase()))).toContain('token=***');
		expect(hidden(LINK.slice(0, -9))).toBe(without(LINK));
	});

	it('keeps something shorter', () => {
		const text = 'https://n8n.example.com/webhook/x?token=abc';
		expect(hidden(text)).toBe(text);
	});
});

const REFERENCES = ["O'Brien", 'row 7', 'a "b" <c>'];
it.each(REFERENCES)('a token is hidden where it is decoded, with the reference %s', (reference) => {
	const address = callbackAddress('https://n8n.example.com/webhook/x/callback', 'key', reference);
	const token = String(new URL(address).searchParams.get('token'));
	const shown = decodeURIComponent(address.replaceAll('+', ' '));
	expect(hidden({ shown })).not.toContain(token);
});

describe('an address of something else', () => {
	const media = `https://media.example.com/r/1.png?token=${OTHER}&signature=${'d4'.repeat(32)}`;
	const bare = 'https://n8n.example.com/webhook/x';

	it.each([
		['by itself', [media]],
		['in a text', media],
		['in an object', [{ url: media }]],
		['as JSON', JSON.stringify([media])],
		['after a comma', `${TRIGGER},${media}`],
		['after an address that has none', `${bare},${media}`],
		['behind a file of ours', `${LINK} ${media.split('?', 1)}?token=${part({ a: 1 })}.a.b`],
	])('keeps its token %s, if it is the link to a result', (_what, resultUrls) => {
		const text = JSON.stringify({ data: { state: 'SUCCESS', resultUrls } });
		const secrets = new SecretRedactor([]);
		secrets.add(TRIGGER);
		expect(secrets.hideInRecord(text)).toBe(without(text));
	});

	it.each([
		['another name', { sha256: OTHER, imageToken: { sha256: OTHER } }],
		['the name that a storage has for it', `${bare}?X-Amz-Signature=${OTHER}`],
		['no name', [OTHER]],
		['more digits', { token: `${OTHER}00` }],
	])('keeps 64 hex digits with %s', (_what, said) => {
		expect(hidden(said)).toContain(OTHER);
	});
});

describe('a token of another run', () => {
	const moved = `https://hooks.example/media?token=${OTHER}`;
	const SAID: Array<[string, unknown]> = [
		['in an address that a proxy has changed', { webhook_url: moved }],
		['as a signature', `${moved.replace('token', 'signature')}&x=1`],
		['in the parts of an address', { callback: { query: { token: OTHER, reference: 'x' } } }],
		['under a longer name', { callbackToken: OTHER }],
		['in a list', { query: { token: [OTHER] } }],
		['beside its name in an object', { query: [{ name: 'token', value: OTHER }] }],
		['beside its key', [{ key: 'Token', val: OTHER }]],
		['before its name', { query: [{ value: OTHER, name: 'token' }] }],
		['beside its name in a list', { query: [['token', OTHER]] }],
		['in a list of names and values', ['reference', 'x', 'token', OTHER]],
		[
			'on lines of its own',
			JSON.stringify({ a: { b: [{ name: 'token', value: OTHER }] } }, null, 4),
		],
		['in a text', `Denied: token ${OTHER}`],
		['beside a result', { state: 'SUCCESS', resultUrls: ['https://m/1.png'], token: OTHER }],
	];
	it.each(SAID)('is hidden %s', (_what, said) => {
		const text = typeof said === 'string' ? said : JSON.stringify(said);
		for (const write of WRITINGS) {
			expect(write(text)).toContain(OTHER);
			expect(hidden(write(text))).not.toContain(OTHER);
			expect(new SecretRedactor([]).hideInRecord(write(text))).not.toContain(OTHER);
		}
	});
});

it.each([
	['by its name', { query: { token: FILE_TOKEN } }],
	['beside its name', [{ name: 'token', value: FILE_TOKEN }]],
])('the token of a file is hidden %s', (_what, said) => {
	for (const write of WRITINGS) {
		const text = write(JSON.stringify(said));
		expect(hidden(text)).not.toContain(FILE_TOKEN);
		expect(new SecretRedactor([]).hideInRecord(text)).not.toContain(FILE_TOKEN);
	}
});

describe('a token that was given out', () => {
	const sent = `https://n8n.example.com/hooks/x/done?token=${TOKEN}`;

	it.each([
		['by itself', { token: TOKEN }, '{"token":"***"}'],
		['in a text', `Denied: ${TOKEN}, for x`, 'Denied: ***, for x'],
		['behind an encoded sign', `x%3d${TOKEN}`, 'x%3d***'],
		['in upper case', TOKEN.toUpperCase(), '***'],
	])('is found %s', (_what, said, expected) => {
		expect(hidden(said, sent)).toBe(expected);
	});

	const RUNS = [
		'\\',
		'/',
		':',
		'%',
		'/webhook/',
		'/webhook\\',
		'/webhook/x:\\',
		'/callback?token=\\',
	];
	it.each(RUNS)('is looked for in a time that grows with the text alone: a run of %s', (part) => {
		const text = part.repeat(1_000_000);
		const before = process.cpuUsage();
		expect(hidden(text)).toBe(text);
		// The square of the length would be many minutes.
		expect(process.cpuUsage(before).user).toBeLessThan(20_000_000);
	});

	it('is looked for in no time, however many there are and however long the text is', () => {
		const secrets = new SecretRedactor([]);
		for (let index = 0; index < 10_000; index++) {
			const token = index.toString(16).padStart(64, '0');
			secrets.add(`https://n8n.example.com/webhook/x/callback?reference=${index}&token=${token}`);
		}
		const picture = 'data:image/png;base64,' + 'abcdef0123456789/webhook'.repeat(100_000);
		const startedAt = performance.now();
		expect(secrets.hide(picture)).toHaveLength(picture.length);
		expect(performance.now() - startedAt).toBeLessThan(10_000);
	});
});

describe('whatever the package gives out', () => {
	const own = [MediaGeneration, MediaGenerationTrigger, MediaGenerationCredits].flatMap((Node) => {
		const { description } = new Node();
		return (description.webhooks ?? []).map(({ path }) => [description.name, path] as const);
	});

	it('is called at the webhook of the trigger alone', () => {
		expect(own).toEqual([['mediaGenerationTrigger', expect.any(String)]]);
	});

	/** n8n's settings of its paths, and others. */
	const ENDPOINTS = [
		...['webhook', 'webhook-test', 'webhook-waiting', 'form', 'hooks', 'my/own-hooks'],
		...['waits', 'wait/for'],
	];
	const node = { id: '1', webhookId: '3f1c2a' } as INode;

	it.each(ENDPOINTS)('is an address below /%s that hides its token in each writing', (endpoint) => {
		for (const [, path] of own) {
			const base = `https://n8n.example.com/${endpoint}`;
			const url = NodeHelpers.getNodeWebhookUrl(base, 'workflow', node, String(path));
			const address = callbackAddress(url, 'sk-live-secret', 'row 7');
			const token = new URL(address).searchParams.get('token') ?? '';
			expect(token).toHaveLength(64);
			for (const write of WRITINGS) {
				expect(write(address).toLowerCase()).toContain(token);
				expect(hidden(write(address)).toLowerCase()).not.toContain(token);
			}
		}
	});

	it.each(['rest', 'api/internal'])('is a link to a file below /%s', (endpoint) => {
		const token = jest.spyOn(BinaryDataService.prototype, 'createSignedToken');
		token.mockReturnValue(FILE_TOKEN);
		const context = executeContext({ host: { restApiUrl: `https://n8n.example.com/${endpoint}` } });
		const file = { data: '', mimeType: 'image/png', id: 'filesystem-v2:1' };
		const link = context.helpers.createBinarySignedUrl(file, '60s');
		expect(link).toContain(FILE_TOKEN);
		for (const write of WRITINGS) expect(hidden(write(link))).not.toContain(FILE_TOKEN);
	});
});
