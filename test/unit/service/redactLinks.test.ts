import { CallbackTokens } from '../../../nodes/MediaGeneration/service/redactTokens';

const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
const TOKEN = `${part({ alg: 'HS256', typ: 'JWT' })}.${part({ id: 'filesystem-v2:1', exp: 1 })}.a-b_${'c'.repeat(39)}`;
const LINK = `https://n8n.example.com/rest/binary-data/signed?token=${TOKEN}`;

const hidden = (text: string) => new CallbackTokens().hide(text);

describe('a link to a file of n8n', () => {
	it.each<[string, (text: string) => string]>([
		['as it is', (text) => text],
		['in a record', (text) => JSON.stringify({ input: { image_url: text } })],
		['in JSON within JSON', (text) => JSON.stringify(JSON.stringify({ image_url: text }))],
		['with escaped slashes', (text) => text.replaceAll('/', '\\/')],
		['with an escaped sign', (text) => text.replaceAll('=', '\\u003d')],
		['in a sentence', (text) => `Could not fetch <${text}>.`],
		['in another address', (text) => `https://x.example/?to=${encodeURIComponent(text)}`],
		['encoded twice', (text) => encodeURIComponent(encodeURIComponent(text))],
	])('%s loses its token, and nothing else', (_how, write) => {
		const bare = write(LINK.replace(TOKEN, '***')).replaceAll('%2A', '*');
		expect(hidden(write(LINK))).toBe(bare);
	});

	it('that was cut off at its end loses what is left of its token', () => {
		expect(hidden(LINK.slice(0, -9))).toBe(LINK.replace(TOKEN, '***'));
	});
});

it("a result that has such a token of the service's own keeps it", () => {
	const result = `https://media.example.com/1.png?token=${TOKEN}`;
	expect(hidden(`${LINK} ${result}`)).toBe(`${LINK.replace(TOKEN, '***')} ${result}`);
});
