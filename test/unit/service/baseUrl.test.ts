import { parseApiKey, parseBaseUrl } from '../../../nodes/MediaGeneration/service/readService';
import { caught, visibleText } from '../support';

const NO_SCHEME = ['api.example.com', 'localhost:8080', '//api.example.com'];
const NO_ADDRESS = [...NO_SCHEME, 'ftp://api.example.com', 'https://', 'https://exa mple.com'];

describe('the base URL', () => {
	it.each([
		['http://localhost:8080', 'http://localhost:8080'],
		['https://api.example.com///', 'https://api.example.com'],
		['  https://api.example.com\n', 'https://api.example.com'],
		['https://gateway.example.com/media/v1/', 'https://gateway.example.com/media/v1'],
		['https://gateway.example.com/api', 'https://gateway.example.com/api'],
		['HTTPS://API.Example.com:443', 'https://api.example.com'],
		['http://[::1]:3000', 'http://[::1]:3000'],
	])('%j is read as %s', (entered, read) => {
		expect(parseBaseUrl(entered)).toBe(read);
	});

	it.each<[string | undefined, string]>([
		['   ', 'is empty'],
		[undefined, 'is empty'],
		...NO_ADDRESS.map((text): [string, string] => [
			text,
			'is not an address with https:// or http:// before it',
		]),
		['https://api.example.com?key=1', "contains '?'"],
		['https://api.example.com/#top', "contains '#'"],
		['https://user:secret@api.example.com', 'contains a user name or password'],
		['https://user@api.example.com', 'contains a user name or password'],
		['https://api.example.com/api/generate', "ends in '/api/generate'"],
		['https://api.example.com/v1/api/credits/', "ends in '/api/credits'"],
	])('%j is refused, since it %s', async (entered, complaint) => {
		expect(await caught(() => parseBaseUrl(entered))).toMatchObject({
			message: expect.stringContaining(
				`The 'Base URL' of the Media Generation credential ${complaint}`,
			),
			description: expect.stringMatching(/^[A-Z].+\.$/),
		});
	});

	const ENDS = ['api.example.com?api_key=secret', 'api.example.com/?a#secret'];
	it.each(['user:secret@api.example.com', ...ENDS])(
		'%j is refused in an error that does not repeat the secret',
		async (address) => {
			const error = await caught(() => parseBaseUrl(`https://${address}`));
			expect(visibleText(error)).not.toContain('secret');
		},
	);
});

describe('the API key', () => {
	it('loses the white space that copying brings along', () => {
		expect(parseApiKey(' sk-live-abc123\n')).toBe('sk-live-abc123');
	});

	it('need not begin with sk-live-, since test keys may not', () => {
		expect(parseApiKey('test_abc')).toBe('test_abc');
	});

	it.each(['', '  ', undefined, null, 7])('is refused as empty where it is %j', (key) => {
		expect(() => parseApiKey(key)).toThrow(
			"The 'API Key' of the Media Generation credential is empty",
		);
	});

	const BROKEN = ['sk-live-a b', 'sk-live-a\nX-Other: 1', 'sk-live-ä', 'sk-live-\u0000'];
	it.each(BROKEN)('is refused where it cannot stand in a header: %j', async (key) => {
		const { message } = await caught(() => parseApiKey(key));
		expect(message).toContain('white space or characters that no key has');
		expect(message).not.toContain(key);
	});
});
