import type { IDataObject } from 'n8n-workflow';

import { type Listening, listen } from '../../listen';
import { outputItems } from '../../n8n/client';
import { type SimulatedService, startService } from '../../service/service';
import { itemNodes, node } from '../nodes';
import { itemsOf, succeeded } from '../run';
import type { Scene } from '../scene';

/** The credential in n8n's own HTTP Request node: the key goes to the service, and to nowhere else. */
export function testCredential(scene: Scene): void {
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
		credential = await scene.client.createCredential('Prefixed', 'mediaGenerationApi', data);
	});
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
	async function request(url: string, parameters: IDataObject = {}, typeVersion = 4.4) {
		const type = {
			authentication: 'predefinedCredentialType',
			nodeCredentialType: 'mediaGenerationApi',
		};
		const all = { url, ...type, options: {}, ...parameters };
		const http = node('n8n-nodes-base.httpRequest', 'Request', all, typeVersion);
		const { id, name } = credential;
		const withKey = { ...http, credentials: { mediaGenerationApi: { id, name } } };
		const execution = await scene.run(`HTTP Request ${typeVersion}`, withKey);
		const { error } = execution.data.resultData;
		expect(JSON.stringify(execution.data)).not.toContain(service.apiKey);
		const shown = `${error?.message} ${error?.description}`;
		return { error, shown, items: outputItems(execution, 'Request') };
	}

	const asked = () =>
		service.requests.map(({ method, path, status }) => `${method} ${path} ${status}`);

	test.each([4, 4.4])(
		'version %d reads the credits of an address with a prefix, and follows no redirect with the key, whatever its options say',
		async (version) => {
			const credits = `${service.url}/api/credits`;
			const { error, items } = await request(credits, {}, version);
			expect(error).toBeUndefined();
			expect(items[0]?.json).toMatchObject({ balance: 100_000 });
			expect(asked()).toEqual(['GET /v1/api/credits 200']);

			service.clear();
			const headers = { location: `${elsewhere.url}/caught` };
			service.configure({ creditsStatus: { status: 302, headers } });
			service.configure({ createStatus: { status: 307, headers } });
			const task = '{ "model": "vendor/model", "input": { "prompt": "A lighthouse" } }';
			const body = { method: 'POST', sendBody: true, specifyBody: 'json', jsonBody: task };
			const options = { redirect: { redirect: { followRedirects: true, maxRedirects: 5 } } };
			expect((await request(credits, { options }, version)).error).toBeDefined();
			expect((await request(`${service.url}/api/generate`, body, version)).error).toBeDefined();
			expect(visits).toEqual([]);
			expect(asked()).toEqual(['GET /v1/api/credits 302', 'POST /v1/api/generate 307']);
		},
	);

	test('a request to another host, to a path beside the prefix, or to the next page elsewhere is refused, and the message says where the key goes', async () => {
		const where = `The API key of this credential is sent to ${service.url} only`;
		const others = [
			`${elsewhere.url}/v1/api/credits`,
			service.url.replace(/v1$/, 'v2/api/credits'),
			`${service.url}/../api/credits`,
		];
		for (const url of others) expect((await request(url)).shown).toContain(where);
		expect([asked(), visits]).toEqual([[], []]);

		const credits = `${service.url}/api/credits`;
		const pagination = {
			paginationMode: 'responseContainsNextURL',
			nextURL: `={{ $pageCount === 0 ? "${credits}" : "${elsewhere.url}/page" }}`,
			paginationCompleteWhen: 'other',
			completeExpression: '={{ $response.body.none }}',
			limitPagesFetched: true,
			maxRequests: 3,
		};
		const { shown } = await request(credits, { options: { pagination: { pagination } } });
		expect(shown).toContain(`is sent to ${service.url} only`);
		expect(visits).toEqual([]);
		expect(asked()).toHaveLength(1);
	});

	test('a credential whose expression gives each item its own key refuses the run before the first request', async () => {
		const data = { baseUrl: service.url, apiKey: '={{ $json.key }}' };
		const { id, name } = await scene.client.createCredential('By row', 'mediaGenerationApi', data);
		const media = scene.media(
			{ resource: 'image', operation: 'generate', prompt: 'A cat', downloadResults: false },
			{ credentials: { mediaGenerationApi: { id, name } }, onError: 'continueRegularOutput' },
		);
		const rows = itemNodes('Rows', [{ key: service.apiKey }, { key: 'sk-live-bob' }]);
		const items = itemsOf(succeeded(await scene.run('Keys', rows, media)));
		expect(items.map(({ error }) => error)).toEqual(
			Array(2).fill(expect.stringContaining('item 2 another account than item 1')),
		);
		expect(asked()).toEqual([]);
	});
}
