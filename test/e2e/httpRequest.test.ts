import type { IDataObject } from 'n8n-workflow';

import { type Listening, listen } from '../listen';
import { outputItems } from '../n8n/client';
import { missingInN8n } from '../n8n/differences';
import { type SimulatedService, startService } from '../service/service';
import { node } from './nodes';
import { openScene } from './scene';

const scene = openScene();
/** The service behind a path prefix, to which the credential of these tests belongs. */
let service: SimulatedService;
let credential: { id: string; name: string };

/** Another host, and the headers of every request that came to it. */
const visits: Array<string | undefined> = [];
let elsewhere: Listening;
const elsewhereUrl = () => elsewhere.url;

beforeAll(async () => {
	elsewhere = await listen((request, response) => {
		visits.push(request.headers.authorization);
		response.setHeader('content-type', 'application/json').end('{}');
	});
	service = await startService({ pathPrefix: '/v1' });
	credential = await scene.client.createCredential('Prefixed', 'mediaGenerationApi', {
		baseUrl: `${service.url}/`,
		apiKey: service.apiKey,
	});
}, 900_000);
afterAll(async () => {
	await service?.close();
	await elsewhere?.close();
});
beforeEach(() => {
	service.resetSettings();
	service.clear();
	visits.length = 0;
});

/** Sends a request with n8n's HTTP Request node and this package's credential. */
async function request(url: string, parameters: IDataObject = {}, typeVersion = 4.2) {
	const { id, name } = credential;
	const http = node(
		'n8n-nodes-base.httpRequest',
		'Request',
		{
			url,
			authentication: 'predefinedCredentialType',
			nodeCredentialType: 'mediaGenerationApi',
			options: {},
			...parameters,
		},
		typeVersion,
	);
	const withKey = { ...http, credentials: { mediaGenerationApi: { id, name } } };
	const execution = await scene.run(`HTTP Request ${typeVersion}`, withKey);
	const { error } = execution.data.resultData;
	const text = JSON.stringify(execution.data);
	expect(text).not.toContain(service.apiKey);
	return {
		error,
		shown: `${error?.message} ${error?.description}`,
		items: outputItems(execution, 'Request'),
	};
}

const asked = () =>
	service.requests.map(({ method, path, status }) => `${method} ${path} ${status}`);

/** Of the node, as far as the chosen n8n has them. */
const isThere = (version: number) =>
	version < 4.4 || missingInN8n('latestHttpRequest') === undefined;

test.each([4, 4.1, 4.2, 4.3, 4.4].filter(isThere))(
	'version %d reads the credits of an address with a prefix',
	async (version) => {
		const { error, items } = await request(`${service.url}/api/credits`, {}, version);
		expect(error).toBeUndefined();
		expect(items[0]?.json).toMatchObject({ balance: 100_000 });
		expect(asked()).toEqual(['GET /v1/api/credits 200']);
	},
);

test.each([
	['another host', () => `${elsewhereUrl()}/v1/api/credits`],
	['a path beside the prefix', () => service.url.replace(/v1$/, 'v2/api/credits')],
	['a path that climbs out of the prefix', () => `${service.url}/../api/credits`],
])('a request to %s is refused, and the message says where the key goes', async (_what, url) => {
	const { shown } = await request(url());
	expect(shown).toContain(`The API key of this credential is sent to ${service.url} only`);
	expect([asked(), visits]).toEqual([[], []]);
});

test.each([4, 4.2, 4.4].filter(isThere))(
	'version %d follows no redirect with the key',
	async (version) => {
		service.configure({
			creditsStatus: { status: 302, headers: { location: `${elsewhereUrl()}/caught` } },
		});
		for (const options of [
			{},
			{ redirect: { redirect: { followRedirects: true, maxRedirects: 5 } } },
		]) {
			const { error } = await request(`${service.url}/api/credits`, { options }, version);
			expect(error).toBeDefined();
		}
		expect(visits).toEqual([]);
		expect(asked()).toEqual(Array(2).fill('GET /v1/api/credits 302'));
	},
);

test('a redirect of a POST is not followed either', async () => {
	service.configure({
		createStatus: { status: 307, headers: { location: `${elsewhereUrl()}/caught` } },
	});
	const { error } = await request(`${service.url}/api/generate`, {
		method: 'POST',
		sendBody: true,
		specifyBody: 'json',
		jsonBody: '{ "model": "vendor/model", "input": { "prompt": "A lighthouse" } }',
	});
	expect(error).toBeDefined();
	expect(visits).toEqual([]);
});

test('query parameters of the panel arrive beside those of the address', async () => {
	const { error } = await request(`${service.url}/api/credits?a=1`, {
		sendQuery: true,
		queryParameters: { parameters: [{ name: 'b', value: 'two & more' }] },
	});
	expect(error).toBeUndefined();
	const [first = ''] = asked();
	const { searchParams } = new URL(first.split(' ')[1] ?? '', service.url);
	expect(Object.fromEntries(searchParams)).toEqual({ a: '1', b: 'two & more' });
});

describe('pagination', () => {
	const pages = (nextUrl: string) => ({
		options: {
			pagination: {
				pagination: {
					paginationMode: 'responseContainsNextURL',
					nextURL: nextUrl,
					paginationCompleteWhen: 'other',
					completeExpression: '={{ $response.body.none }}',
					limitPagesFetched: true,
					maxRequests: 3,
				},
			},
		},
	});

	test('adds the key to each page', async () => {
		const { error, items } = await request(
			`${service.url}/api/credits`,
			pages(`={{ "${service.url}/api/credits?page=" + $pageCount }}`),
		);
		expect(error).toBeUndefined();
		expect(items).toHaveLength(3);
		expect(service.requests.map(({ status }) => status)).toEqual([200, 200, 200]);
	});

	test('does not take the key along to another host', async () => {
		const { shown } = await request(
			`${service.url}/api/credits`,
			pages(`={{ $pageCount === 0 ? "${service.url}/api/credits" : "${elsewhereUrl()}/page" }}`),
		);
		expect(shown).toContain(`is sent to ${service.url} only`);
		expect(visits).toEqual([]);
		expect(asked()).toHaveLength(1);
	});
});
