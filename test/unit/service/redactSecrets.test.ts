import { callbackAddress } from '../../../nodes/MediaGeneration/callback/callbackAddress';
import { SecretRedactor } from '../../../nodes/MediaGeneration/service/redactSecrets';

const KEY = 'sk-live-a/secret+key';
const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
const FILE_TOKEN = `${part({ alg: 'HS256', typ: 'JWT' })}.${part({ id: 'filesystem-v2:1', exp: 1 })}.a-b_${'c'.repeat(39)}`;
const LINK = `https://n8n.example.com/rest/binary-data/signed?token=${FILE_TOKEN}`;

/** A callback address that an execution with the key has given out. */
const given = (url: string, reference?: string) => callbackAddress(url, KEY, reference);
const TRIGGER = 'https://n8n.example.com/webhook/3f1c2a/callback';
const tokenIn = (address: string) => String(new URL(address).searchParams.get('token'));

/** What a process makes of a text that knows the key, and has given out nothing itself but these tokens. */
const hidden = (text: string, ...tokens: string[]) => {
	const secrets = new SecretRedactor([KEY]);
	for (const token of tokens) secrets.add(token);
	expect(secrets.hideInRecord(text)).toBe(secrets.hide(text));
	return secrets.hide(text);
};

/** As what a service, or a log, writes holds an address. */
const WRITINGS: Array<(text: string) => string> = [
	(text) => text,
	JSON.stringify,
	(text) => JSON.stringify({ webhook_url: text, state: 'PENDING' }, null, 2),
	(text) => JSON.stringify({ request: JSON.stringify({ webhook_url: text }) }),
	(text) => JSON.stringify({ text }).replaceAll('/', '\\/'),
	(text) => JSON.stringify({ text }).replaceAll('&', '\\u0026'),
	(text) => JSON.stringify(JSON.stringify({ text }).replaceAll('&', '\\u0026')),
	(text) => `Callback to <${text}> failed`,
];

describe('an address of n8n', () => {
	it.each([
		['of a trigger', given(TRIGGER)],
		['of a test event', given(TRIGGER.replace('webhook', 'webhook-test'))],
		['behind a prefix', given(TRIGGER.replace('/webhook/', '/n8n/webhook/'))],
		['of an n8n that serves its webhooks elsewhere', given(TRIGGER.replace('webhook', 'my-hooks'))],
		['with another parameter', given(`${TRIGGER}?x=1`)],
		['with a reference', given(TRIGGER, 'row 17')],
		['with an address as a reference', given(TRIGGER, 'https://shop/17?a=b&token=c')],
		['with quotes in its reference', given(TRIGGER, `O'Brien "b" <c>`)],
		['of a file', LINK],
	])('%s loses its token, and nothing else, whoever gave it out', (_what, address) => {
		for (const write of WRITINGS) {
			expect(hidden(write(address))).toBe(write(address.replace(tokenIn(address), '***')));
		}
	});

	it('loses the token wherever else the text has it', () => {
		const token = tokenIn(given(TRIGGER));
		const text = JSON.stringify({ webhook_url: given(TRIGGER), query: { token } });
		expect(hidden(text)).not.toContain(token);
	});
});

describe('a token that this process gave out', () => {
	const token = tokenIn(given(TRIGGER));

	it.each<[string, string]>([
		['by itself', JSON.stringify({ token })],
		['in a text', `Denied: ${token}, for x`],
		['behind an encoded sign', `x%3d${token}`],
		['in an address that a proxy has changed', `https://hooks.example/x?token=${token}`],
		['in an address within another', encodeURIComponent(encodeURIComponent(given(TRIGGER)))],
	])('is hidden %s', (_what, text) => {
		expect(hidden(text, token)).toBe(text.replace(token, '***'));
	});

	it('is one of the latest hundred', () => {
		const tokens = Array.from({ length: 101 }, (_, at) => at.toString(16).padStart(64, '0'));
		expect(hidden(tokens.join(), ...tokens)).toBe(`${tokens[0]},${Array(100).fill('***').join()}`);
	});

	it.each(['', 'token', 'a1'.repeat(31)])('is not "%s"', (none) => {
		const text = `a token ${none}`;
		expect(hidden(text, none)).toBe(text);
	});
});

describe('the key', () => {
	it.each([
		['by itself', KEY],
		['as JSON', KEY.replace('/', '\\/')],
		['in an address', encodeURIComponent(KEY)],
	])('is hidden %s', (_what, written) => {
		expect(hidden(`{"for":"${written}"}`)).toBe('{"for":"***"}');
	});
});

describe('what is not ours', () => {
	const other = 'b2'.repeat(32);
	const ofOtherKey = callbackAddress(TRIGGER, 'sk-live-another-key');
	it.each([
		`https://media.example.com/r/1.png?token=${other}&signature=${'d4'.repeat(32)}`,
		`https://media.example.com/r/1.png?X-Amz-Signature=${other}&X-Amz-Expires=60`,
		`https://x.supabase.co/storage/v1/object/sign/b/1.png?token=${FILE_TOKEN}`,
		`https://media.example.com/files/signed?token=${FILE_TOKEN}`,
		`https://media.example.com/callback?token=${other}`,
		`https://media.example.com/callback?token=`,
		`callback?token=${other}`,
		`http callback? signed? ://callback?token=${other}`,
		`token ${other}, ${FILE_TOKEN}`,
		// Who has another key made the token; with this key it opens nothing.
		ofOtherKey,
	])('stays as it is: %s', (text) => {
		for (const write of WRITINGS) expect(hidden(write(text))).toBe(write(text));
	});
});
