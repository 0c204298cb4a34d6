import type { IHttpRequestOptions } from 'n8n-workflow';

import { MediaGenerationApi } from '../../../credentials/MediaGenerationApi.credentials';
import { caught } from '../support';

const KEY = 'sk-live-secret';
const HOST = 'https://api.example.com';
const CREDITS = `${HOST}/v1/api/credits`;
const EVIL = 'https://evil.example.com/v1/api/credits';
const Authorization = `Bearer ${KEY}`;
const type = new MediaGenerationApi();

async function authenticate(
	request: Partial<IHttpRequestOptions> & { uri?: string },
	credential: { baseUrl?: string; apiKey?: string } = {},
): Promise<IHttpRequestOptions> {
	if (typeof type.authenticate !== 'function') throw new Error('authenticate is no function');
	return await type.authenticate(
		{ baseUrl: `${HOST}/v1`, apiKey: KEY, ...credential },
		request as IHttpRequestOptions,
	);
}

it('adds the key as a bearer token, without the white space around it', async () => {
	for (const apiKey of [KEY, ` ${KEY}\n`]) {
		const { headers } = await authenticate({ url: CREDITS }, { apiKey });
		expect(headers).toEqual({ Authorization });
	}
});

it('keeps the other headers, the method and the body, and leaves the request as it was', async () => {
	const headers = { Accept: 'application/json' };
	const url = `${HOST}/v1/api/generate`;
	const request = { url, method: 'POST' as const, body: { model: 'a/b' }, headers };
	const sent = { ...request, headers: { ...headers, Authorization } };
	expect(await authenticate(request)).toMatchObject(sent);
	expect(request).toEqual({ url, method: 'POST', body: { model: 'a/b' }, headers });
	expect(headers).toEqual({ Accept: 'application/json' });
});

describe("a request of n8n's HTTP Request node", () => {
	const uri = CREDITS;

	it('names its address otherwise, and gets the key all the same', async () => {
		const sent = await authenticate({ uri, qs: { page: 2 } });
		expect(sent).toMatchObject({ url: uri, qs: { page: 2 }, headers: { Authorization } });
		expect(sent).not.toHaveProperty('uri');
	});

	it('follows no redirect, whatever its options say, so that the key stays with the service', async () => {
		const followAll = { followRedirect: true, followAllRedirects: true, maxRedirects: 21 };
		expect(await authenticate({ uri, disableFollowRedirect: false, ...followAll })).toMatchObject({
			disableFollowRedirect: true,
			followRedirect: false,
			followAllRedirects: false,
		});
	});

	it('with two addresses is checked for the one that n8n would send it to', async () => {
		const refused = authenticate({ uri, url: EVIL });
		await expect(refused).rejects.toThrow('not to https://evil.example.com');
		expect(await authenticate({ uri: EVIL, url: uri })).toMatchObject({ url: uri });
	});

	it('brings no key of its own along, however it writes the header', async () => {
		const headers = { authorization: 'Bearer other', AUTHORIZATION: 'Bearer third', accept: '*/*' };
		const sent = await authenticate({ uri, headers });
		expect(sent.headers).toEqual({ accept: '*/*', Authorization });
	});
});

it.each([
	['POST', 'generate', false],
	['GET', 'generate/task-1', true],
	['GET', 'credits', true],
	['POST', 'other', false],
] as const)(
	"a %s of %s can be broken off by n8n's cancel signal: %s, as a create may be paid for already",
	async (method, path, isKept) => {
		const stop = new AbortController();
		const request = { method, url: `${HOST}/v1/api/${path}`, abortSignal: stop.signal };
		const sent = await authenticate(request);
		stop.abort();
		expect((sent.abortSignal as AbortSignal | undefined)?.aborted).toBe(isKept ? true : undefined);
	},
);

it.each(['POST', 'GET'] as const)('a %s ends when the time of its answer is up', async (method) => {
	const giveUp = new AbortController();
	const request = { method, url: `${HOST}/v1/api/generate`, giveUp: giveUp.signal };
	const { abortSignal, ...sent } = await authenticate(request);
	expect(sent).not.toHaveProperty('giveUp');
	expect((abortSignal as AbortSignal).aborted).toBe(false);
	giveUp.abort();
	expect((abortSignal as AbortSignal).aborted).toBe(true);
});

it.each([
	['another host', EVIL],
	['another scheme', 'http://api.example.com/v1/api/credits'],
	['another port', `${HOST}:8443/v1/api/credits`],
	['a path beside the prefix', `${HOST}/v2/api/credits`],
	['a path that only begins like the prefix', `${HOST}/v10/api/credits`],
	['a path that climbs out of the prefix', `${HOST}/v1/../admin`],
	['an encoded way out of the prefix', `${HOST}/v1/%2e%2e/admin`],
	['a host in the disguise of a user name', `${HOST}@evil.example.com/v1/api`],
	['a host that begins alike', `${HOST}.evil.example/v1/api`],
])('refuses to add the key to a request to %s', async (_what, address) => {
	for (const request of [{ url: address }, { uri: address }]) {
		const { message } = await caught(() => authenticate(request));
		expect(message).toContain(`is sent to ${HOST}/v1 only`);
		expect(message).not.toContain(KEY);
	}
});

const BASE_URLS = [`${HOST}/v1`, `${HOST}/v1/`, ` ${HOST}/v1/ `];
it.each(BASE_URLS)('sends its test to the credits, with %j as the base URL', async (baseUrl) => {
	const { baseURL, url = '' } = type.test.request;
	expect([baseURL, url]).toEqual(['={{$credentials.baseUrl}}', '/api/credits']);
	// n8n resolves the expression and hands both over.
	const sent = await authenticate({ baseURL: baseUrl, url }, { baseUrl });
	expect(sent).toMatchObject({ url: CREDITS, headers: { Authorization } });
	expect(sent).not.toHaveProperty('baseURL');
});

const REFUSED = [{ code: 401 }, { code: '401', msg: 'No' }, { status: 403 }, { statusCode: 403 }];
it.each(REFUSED)('sees in its test a key that is refused with 200 and %j', (body) => {
	const ofBody = type.test.rules?.filter((rule) => rule.type === 'responseSuccessBody') ?? [];
	// As n8n looks at an answer.
	const found = ofBody.find(
		({ properties: { key, value } }) => (body as Record<string, unknown>)[key] === value,
	);
	expect(found?.properties.message).toContain("this 'API Key'");
});

it.each([
	[{ url: '/api/credits' }, CREDITS],
	[{ url: 'api/credits', baseURL: `${HOST}/v1/` }, CREDITS],
	[{ url: CREDITS, baseURL: `${HOST}/v1` }, CREDITS],
	[{ url: CREDITS, baseURL: '' }, CREDITS],
	[{ url: '', uri: '/api/credits' }, CREDITS],
	[{ uri: `${HOST}/v1` }, `${HOST}/v1`],
	[{ uri: `${HOST}/v1/` }, `${HOST}/v1/`],
	[{ uri: `${HOST}/v1?page=2` }, `${HOST}/v1?page=2`],
])('adds the key to a request below the base URL, or to it: %j', async (request, url) => {
	expect(await authenticate(request)).toMatchObject({ url, headers: { Authorization } });
});

it.each([
	[{ url: '/v1/api/credits', baseURL: 'https://evil.example.com' }, `not to ${EVIL}`],
	[{ url: EVIL, baseURL: `${HOST}/v1` }, `not to ${EVIL}`],
	[{ url: `${HOST}/v2/api` }, `${HOST}/v1 only, not to ${HOST}/v2/api`],
	[{ url: '//evil.example.com/v1' }, 'not to //evil.example.com/v1'],
])('refuses the request %j, and names its address', async (request, said) => {
	const { message } = await caught(() => authenticate(request));
	expect(message).toContain(said);
});

it('refuses a test whose base URL cannot be used, and says why and what to enter', async () => {
	const request = { baseURL: 'api.example.com', url: '/api/credits' };
	await expect(authenticate(request, { baseUrl: 'api.example.com' })).rejects.toThrow(
		/is not an address with https:\/\/ or http:\/\/ before it. Start it with https:\/\//,
	);
});

it('asks for the service first, shows the key as a password, and needs an address for the specification alone', () => {
	expect(type.properties).toMatchObject([
		{ name: 'service', type: 'options', default: '' },
		{ name: 'interface', displayOptions: { show: { service: ['other'] } } },
		{ name: 'baseUrl', required: true, displayOptions: { show: { service: [''] } } },
		{ name: 'apiKey', type: 'string', required: true, typeOptions: { password: true } },
		{ name: 'models', type: 'fixedCollection', default: {} },
		{ name: 'baseUrl', default: '', displayOptions: { hide: { service: [''] } } },
	]);
});

describe('the test of the credential', () => {
	const { request } = type.test;
	const tested = async (inputExample: string) => {
		const models = { model: [{ id: 'acme/painter', inputExample }] };
		const given = { url: CREDITS, headers: request.headers as Record<string, string> };
		return await authenticate(given, { models } as object);
	};

	it('refuses the input example of a model that cannot be read', async () => {
		const words = /^The input example of 'acme\/painter' is not valid JSON\. Copy the input/;
		await expect(tested('{ prompt: 1 }')).rejects.toThrow(words);
	});

	it('sends no more than other requests if it can be read, and they do not read it', async () => {
		expect((await tested('{ "prompt": "" }')).headers).toEqual({ Authorization });
		const models = { model: [{ id: 'acme/painter', inputExample: '{ prompt: 1 }' }] };
		const sent = await authenticate({ url: CREDITS }, { models } as object);
		expect(sent.headers).toEqual({ Authorization });
	});
});
