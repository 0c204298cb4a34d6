import type { IHttpRequestOptions } from 'n8n-workflow';

import { MediaGenerationApi } from '../../../credentials/MediaGenerationApi.credentials';
import { caught } from '../support';

const KEY = 'sk-live-secret';
const type = new MediaGenerationApi();

async function authenticate(
	request: Partial<IHttpRequestOptions> & { uri?: string },
	credential: { baseUrl?: string; apiKey?: string } = {},
): Promise<IHttpRequestOptions> {
	if (typeof type.authenticate !== 'function') throw new Error('authenticate is no function');
	return await type.authenticate(
		{ baseUrl: 'https://api.example.com/v1', apiKey: KEY, ...credential },
		request as IHttpRequestOptions,
	);
}

it('adds the key as a bearer token to a request to the base URL', async () => {
	const { headers } = await authenticate({ url: 'https://api.example.com/v1/api/credits' });
	expect(headers).toEqual({ Authorization: `Bearer ${KEY}` });
});

it('keeps the other headers, the method and the body', async () => {
	const request = {
		url: 'https://api.example.com/v1/api/generate',
		method: 'POST' as const,
		body: { model: 'a/b' },
		headers: { Accept: 'application/json' },
	};
	expect(await authenticate(request)).toMatchObject({
		...request,
		headers: { Accept: 'application/json', Authorization: `Bearer ${KEY}` },
	});
});

it('sends the key without the white space around it', async () => {
	const request = { url: 'https://api.example.com/v1/api/credits' };
	const { headers } = await authenticate(request, { apiKey: ` ${KEY}\n` });
	expect(headers).toHaveProperty('Authorization', `Bearer ${KEY}`);
});

it('has no redirect followed, so that the key stays with the service', async () => {
	const request = { url: 'https://api.example.com/v1/api/credits', disableFollowRedirect: false };
	expect(await authenticate(request)).toHaveProperty('disableFollowRedirect', true);
});

describe("a request of n8n's HTTP Request node", () => {
	const uri = 'https://api.example.com/v1/api/credits';

	it('names its address otherwise, and gets the key all the same', async () => {
		const sent = await authenticate({ uri, qs: { page: 2 } });
		expect(sent).toMatchObject({
			url: uri,
			qs: { page: 2 },
			headers: { Authorization: `Bearer ${KEY}` },
		});
		expect(sent).not.toHaveProperty('uri');
	});

	it('follows no redirect, whatever its options say', async () => {
		const options = { uri, followRedirect: true, followAllRedirects: true, maxRedirects: 21 };
		expect(await authenticate(options)).toMatchObject({
			followRedirect: false,
			followAllRedirects: false,
		});
	});

	it('with two addresses is checked for the one that n8n would send it to', async () => {
		await expect(authenticate({ uri, url: 'https://evil.example.com/v1/api' })).rejects.toThrow(
			'not to https://evil.example.com',
		);
		expect(await authenticate({ uri: 'https://evil.example.com/', url: uri })).toMatchObject({
			url: uri,
		});
	});

	it('to another host is refused', async () => {
		await expect(authenticate({ uri: 'https://evil.example.com/v1/api/credits' })).rejects.toThrow(
			'is sent to https://api.example.com/v1 only',
		);
	});

	it('brings no key of its own along, however it writes the header', async () => {
		const headers = { authorization: 'Bearer other', AUTHORIZATION: 'Bearer third', accept: '*/*' };
		expect((await authenticate({ uri, headers })).headers).toEqual({
			accept: '*/*',
			Authorization: `Bearer ${KEY}`,
		});
	});
});

describe("n8n's cancel signal", () => {
	const { signal: abortSignal } = new AbortController();
	const base = 'https://api.example.com/v1/api';

	it('is left out of a create, which may be paid for already', async () => {
		const url = `${base}/generate`;
		expect(await authenticate({ method: 'POST', url, abortSignal })).not.toHaveProperty(
			'abortSignal',
		);
	});

	it.each([
		['GET', `${base}/generate/task-1`],
		['GET', `${base}/credits`],
		['POST', `${base}/other`],
	] as const)('is kept in a %s of %s', async (method, url) => {
		expect(await authenticate({ method, url, abortSignal })).toMatchObject({ abortSignal });
	});
});

it('leaves the request that it was given as it was', async () => {
	const request = { url: 'https://api.example.com/v1/api/credits', headers: {} };
	await authenticate(request);
	expect(request).toEqual({ url: 'https://api.example.com/v1/api/credits', headers: {} });
});

it.each([
	['another host', 'https://evil.example.com/v1/api/credits'],
	['another scheme', 'http://api.example.com/v1/api/credits'],
	['another port', 'https://api.example.com:8443/v1/api/credits'],
	['a path beside the prefix', 'https://api.example.com/v2/api/credits'],
	['a path that only begins like the prefix', 'https://api.example.com/v10/api/credits'],
	['a path that climbs out of the prefix', 'https://api.example.com/v1/../admin'],
	['an encoded way out of the prefix', 'https://api.example.com/v1/%2e%2e/admin'],
	['a host in the disguise of a user name', 'https://api.example.com@evil.example.com/v1/api'],
	['a host that begins alike', 'https://api.example.com.evil.example/v1/api'],
])('refuses to add the key to a request to %s', async (_what, url) => {
	const error = await caught(() => authenticate({ url }));
	expect(error.message).toContain('is sent to https://api.example.com/v1 only');
	expect(error.message).not.toContain(KEY);
});

it.each([
	'https://api.example.com/v1',
	'https://api.example.com/v1/',
	' https://api.example.com/v1/ ',
])('sends the test of the credential to the credits, with %j as the base URL', async (baseUrl) => {
	const { baseURL, url } = type.test.request;
	expect({ baseURL, url }).toEqual({
		baseURL: '={{$credentials.baseUrl}}',
		url: '/api/credits',
	});
	// n8n resolves the expression and hands both over.
	const sent = await authenticate({ baseURL: baseUrl, url: url ?? '' }, { baseUrl });
	expect(sent).toMatchObject({
		url: 'https://api.example.com/v1/api/credits',
		headers: { Authorization: `Bearer ${KEY}` },
	});
	expect(sent).not.toHaveProperty('baseURL');
});

it('refuses a test whose base URL cannot be used, and says why and what to enter', async () => {
	const request = { baseURL: 'api.example.com', url: '/api/credits' };
	await expect(authenticate(request, { baseUrl: 'api.example.com' })).rejects.toThrow(
		/is not an address with https:\/\/ or http:\/\/ before it. Start it with https:\/\//,
	);
});

it('shows the key as a password, and asks for both fields', () => {
	expect(type.properties).toMatchObject([
		{ name: 'baseUrl', type: 'string', required: true },
		{ name: 'apiKey', type: 'string', required: true, typeOptions: { password: true } },
	]);
});
