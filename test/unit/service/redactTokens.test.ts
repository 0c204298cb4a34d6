import { CallbackTokens } from '../../../nodes/MediaGeneration/service/redactTokens';

const TOKEN = 'a1'.repeat(32);
const OTHER = 'b2'.repeat(32);
const SIGNATURE = 'c3'.repeat(32);

const hidden = (value: unknown, ...sent: string[]) => {
	const tokens = new CallbackTokens();
	for (const address of sent) tokens.add(address);
	return tokens.hide(typeof value === 'string' ? value : JSON.stringify(value));
};

describe('an address of a webhook of n8n', () => {
	const trigger = `https://n8n.example.com/webhook/3f1c2a/callback?token=${TOKEN}`;

	it.each([
		['of a trigger', trigger],
		['of a test event', trigger.replace('webhook', 'webhook-test')],
		['behind a prefix', trigger.replace('/webhook/', '/n8n/webhook/')],
		['of an n8n that serves its webhooks elsewhere', trigger.replace('/webhook/', '/hooks/')],
		[
			'that resumes',
			`https://n8n.example.com/webhook-waiting/12/callback?signature=${SIGNATURE}&token=${TOKEN}`,
		],
		['with a reference before it', trigger.replace('?', '?reference=order%2017%26x&')],
		[
			'with a reference that is an address',
			trigger.replace('?', '?reference=https%3A%2F%2Fshop%2F17&'),
		],
		['with a reference after it', `${trigger}&reference=row-17`],
	])('%s loses its token, and nothing else', (_what, address) => {
		const bare = address.replace(TOKEN, '***').replace(SIGNATURE, '***');
		expect(bare).not.toBe(address);
		for (const write of [
			(text: string) => text,
			JSON.stringify,
			(text: string) => JSON.stringify({ request: JSON.stringify({ webhook_url: text }) }),
			(text: string) => text.replaceAll('/', '\\/'),
			(text: string) => text.replaceAll('&', '\\u0026').replaceAll('=', '\\u003d'),
			(text: string) => text.replaceAll('&', '\\\\u0026'),
			(text: string) => text.replaceAll('&', '&amp;'),
			(text: string) => `Callback to <${text}> failed`,
			(text: string) => `https://log.example.com/?to=${encodeURIComponent(text)}`,
			(text: string) => encodeURIComponent(encodeURIComponent(text)),
			(text: string) =>
				encodeURIComponent(text).replace(/%[0-9A-F]{2}/g, (code) => code.toLowerCase()),
		]) {
			const plain = write(bare).replaceAll('%2A', '*');
			expect(hidden(write(address))).toBe(plain);
		}
	});

	it('in upper case digits loses them, too', () => {
		expect(hidden(trigger.replace(TOKEN, TOKEN.toUpperCase()))).toContain('token=***');
	});
});

describe('an address of something else', () => {
	const media = `https://media.example.com/r/1.png?token=${OTHER}&signature=${SIGNATURE}`;
	const callback = `https://n8n.example.com/webhook/x/callback?token=${TOKEN}`;

	it('keeps its token', () => {
		expect(hidden({ resultUrls: [media] }, callback)).toBe(JSON.stringify({ resultUrls: [media] }));
	});

	it.each([
		['in a list', JSON.stringify([callback, media])],
		['after a comma', `${callback},${media}`],
		['after an address that has none', `https://n8n.example.com/webhook/x,${media}`],
		['encoded, after a comma', encodeURIComponent(`https://n8n.example.com/webhook/x,${media}`)],
		[
			'escaped, after a comma',
			`https:\\/\\/n8n.example.com\\/webhook\\/x,${media.replaceAll('/', '\\/')}`,
		],
	])('keeps it beside ours, %s', (_what, text) => {
		expect(hidden(text)).toBe(text.replace(TOKEN, '***'));
	});

	it('that is ours but carries something shorter keeps it', () => {
		const text = 'https://n8n.example.com/webhook/x?token=abc';
		expect(hidden(text)).toBe(text);
	});
});

describe('a token that was given out', () => {
	const sent = `https://n8n.example.com/hooks/x/done?signature=${SIGNATURE}&token=${TOKEN}`;

	it.each([
		['by itself', { token: TOKEN }, { token: '***' }],
		['in a text', `Denied: ${TOKEN}, ${SIGNATURE}`, 'Denied: ***, ***'],
		['behind an encoded sign', `x%3d${TOKEN}`, 'x%3d***'],
		['in upper case', TOKEN.toUpperCase(), '***'],
	])('is found %s', (_what, said, expected) => {
		const text = typeof expected === 'string' ? expected : JSON.stringify(expected);
		expect(hidden(said, sent)).toBe(text);
	});

	it.each(['\\', '/', ':', '%', '/webhook/', '/webhook\\', '/webhook/x:\\', '/callback?token=\\'])(
		'is looked for in a time that grows with the text alone, also in a run of %s',
		(part) => {
			const text = part.repeat(1_000_000);
			const before = process.cpuUsage();
			expect(hidden(text)).toBe(text);
			// The square of the length would be many minutes.
			expect(process.cpuUsage(before).user).toBeLessThan(20_000_000);
		},
	);

	it('is looked for in no time, however many there are and however long the text is', () => {
		const tokens = new CallbackTokens();
		for (let index = 0; index < 10_000; index++) {
			const token = index.toString(16).padStart(64, '0');
			tokens.add(`https://n8n.example.com/webhook/x/callback?reference=${index}&token=${token}`);
		}
		const picture = 'data:image/png;base64,' + 'abcdef0123456789/webhook'.repeat(100_000);
		const startedAt = performance.now();
		expect(tokens.hide(picture)).toHaveLength(picture.length);
		expect(performance.now() - startedAt).toBeLessThan(10_000);
	});
});
