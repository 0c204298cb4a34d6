import type { IDataObject } from 'n8n-workflow';

import { type Listening, listen } from '../listen';
import { outputItems } from '../n8n/client';
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
beforeAll(async () => {
	elsewhere = await listen((request, response) => {
		visits.push(request.headers.authorization);
		response.setHeader('content-type', 'application/json').end('{}');
	});
	service = await startService({ pathPrefix: '/v1' });
	const data = { baseUrl: `${service.url}/`, apiKey: service.apiKey };
	const { id, name } = await scene.client.createCredential('Prefixed', 'mediaGenerationApi', data);
	credential = { id, name };
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
	const type = {
		authentication: 'predefinedCredentialType',
		nodeCredentialType: 'mediaGenerationApi',
	};
	const all = { url, ...type, options: {}, ...parameters };
	const http = node('n8n-nodes-base.httpRequest', 'Request', all, typeVersion);
	const withKey = { ...http, credentials: { mediaGenerationApi: credential } };
	const execution = await scene.run(`HTTP Request ${typeVersion}`, withKey);
	const { error } = execution.data.resultData;
	expect(JSON.stringify(execution.data)).not.toContain(service.apiKey);
	const shown = `${error?.message} ${error?.description}`;
	return { error, shown, items: outputItems(execution, 'Request') };
}

const asked = () =>
	service.requests.map(({ method, path, status }) => `${method} ${path} ${status}`);

test.each([4, 4.1, 4.2, 4.3, 4.4])(
	'version %d reads the credits of an address with a prefix',
	async (version) => {
		const { error, items } = await request(`${service.url}/api/credits`, {}, version);
		expect(error).toBeUndefined();
		expect(items[0]?.json).toMatchObject({ balance: 100_000 });
		expect(asked()).toEqual(['GET /v1/api/credits 200']);
	},
);

test.each([
	['another host', () => `${elsewhere.url}/v1/api/credits`],
	['a path beside the prefix', () => service.url.replace(/v1$/, 'v2/api/credits')],
	['a path that climbs out of the prefix', () => `${service.url}/../api/credits`],
])('a request to %s is refused, and the message says where the key goes', async (_what, url) => {
	const { shown } = await request(url());
	expect(shown).toContain(`The API key of this credential is sent to ${service.url} only`);
	expect([asked(), visits]).toEqual([[], []]);
});

const maxRedirects = { redirect: { followRedirects: true, maxRedirects: 5 } };

test.each([4, 4.2, 4.4])(
	'version %d follows no redirect with the key, whatever its options say',
	async (version) => {
		const headers = { location: `${elsewhere.url}/caught` };
		service.configure({ creditsStatus: { status: 302, headers } });
		service.configure({ createStatus: { status: 307, headers } });
		const task = '{ "model": "vendor/model", "input": { "prompt": "A lighthouse" } }';
		const body = { method: 'POST', sendBody: true, specifyBody: 'json', jsonBody: task };
		const credits = `${service.url}/api/credits`;
		for (const options of [{}, { redirect: maxRedirects }]) {
			expect((await request(credits, { options }, version)).error).toBeDefined();
		}
		expect((await request(`${service.url}/api/generate`, body, version)).error).toBeDefined();
		expect(visits).toEqual([]);
		const paths = [
			'GET /v1/api/credits 302',
			'GET /v1/api/credits 302',
			'POST /v1/api/generate 307',
		];
		expect(asked()).toEqual(paths);
	},
);

test('query parameters of the panel arrive beside those of the address', async () => {
	const queryParameters = { parameters: [{ name: 'b', value: 'two & more' }] };
	const url = `${service.url}/api/credits?a=1`;
	const { error } = await request(url, { sendQuery: true, queryParameters });
	expect(error).toBeUndefined();
	const [first = ''] = asked();
	const { searchParams } = new URL(first.split(' ')[1] ?? '', service.url);
	expect(Object.fromEntries(searchParams)).toEqual({ a: '1', b: 'two & more' });
});

test('pagination adds the key to each page, and does not take it along to another host', async () => {
	const credits = `${service.url}/api/credits`;
	const pages = async (nextURL: string) => {
		const pagination = {
			paginationMode: 'responseContainsNextURL',
			nextURL,
			paginationCompleteWhen: 'other',
			completeExpression: '={{ $response.body.none }}',
			limitPagesFetched: true,
			maxRequests: 3,
		};
		return await request(credits, { options: { pagination: { pagination } } });
	};
	const { error, items } = await pages(`={{ "${credits}?page=" + $pageCount }}`);
	expect(error).toBeUndefined();
	expect(items).toHaveLength(3);
	expect(service.requests.map(({ status }) => status)).toEqual([200, 200, 200]);

	service.clear();
	const next = `={{ $pageCount === 0 ? "${credits}" : "${elsewhere.url}/page" }}`;
	expect((await pages(next)).shown).toContain(`is sent to ${service.url} only`);
	expect(visits).toEqual([]);
	expect(asked()).toHaveLength(1);
});
