import { callbackAddress } from '../../../nodes/MediaGeneration/callback/callbackToken';
import { CALLBACK_PATH } from '../../../nodes/MediaGeneration/callback/triggerCallbackUrl';
import { SecretRedactor } from '../../../nodes/MediaGeneration/service/redactSecrets';

const TOKEN = 'a1'.repeat(32);
const OTHER = 'b2'.repeat(32);
const SIGNATURE = 'c3'.repeat(32);
const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
const FILE_TOKEN = `${part({ alg: 'HS256', typ: 'JWT' })}.${part({ id: 'filesystem-v2:1', exp: 1 })}.a-b_${'c'.repeat(39)}`;

const TRIGGER = `https://n8n.example.com/webhook/3f1c2a/callback?token=${TOKEN}`;
const RESUMES = `https://n8n.example.com/webhook-waiting/12/media-generation?signature=${SIGNATURE}&token=${TOKEN}`;
const LINK = `https://n8n.example.com/rest/binary-data/signed?token=${FILE_TOKEN}`;

const hidden = (value: unknown, ...sent: string[]) => {
	const secrets = new SecretRedactor([]);
	for (const address of sent) secrets.add(address);
	return secrets.hide(typeof value === 'string' ? value : JSON.stringify(value));
};
const without = (text: string) =>
	[TOKEN, SIGNATURE, FILE_TOKEN].reduce((rest, secret) => rest.replaceAll(secret, '***'), text);

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
		['that resumes', RESUMES],
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
		['by itself', { resultUrls: [media] }],
		['in a list', [TRIGGER, media]],
		['after a comma', `${TRIGGER},${media}`],
		['after an address that has none', `${bare},${media}`],
		['encoded, after a comma', encodeURIComponent(`${bare},${media}`)],
		['escaped, after a comma', `${bare},${media}`.replaceAll('/', '\\/')],
		['behind a file of ours', `${LINK} ${media.split('?', 1)}?token=${part({ a: 1 })}.a.b`],
	])('keeps its token %s', (_what, said) => {
		const text = typeof said === 'string' ? said : JSON.stringify(said);
		expect(hidden(text, TRIGGER)).toBe(without(text));
	});
});

describe('a token that was given out', () => {
	const sent = `https://n8n.example.com/hooks/x/done?signature=${SIGNATURE}&token=${TOKEN}`;

	it.each([
		['by itself', { token: TOKEN }, '{"token":"***"}'],
		['in a text', `Denied: ${TOKEN}, ${SIGNATURE}`, 'Denied: ***, ***'],
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

it.each(['webhook', 'webhook-test', 'hooks', 'my/own-hooks'])(
	'the address that the trigger gives out below /%s is found by its path, in each writing',
	(endpoint) => {
		const url = `https://n8n.example.com/${endpoint}/3f1c2a/${CALLBACK_PATH}`;
		const address = callbackAddress(url, 'sk-live-secret', 'row 7');
		const token = new URL(address).searchParams.get('token') ?? '';
		for (const written of WRITINGS) expect(hidden(written(address))).not.toContain(token);
	},
);
