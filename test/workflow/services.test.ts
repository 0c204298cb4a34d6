import type { IDataObject, IHttpRequestOptions, INodeExecutionData } from 'n8n-workflow';
import nock from '../nock';

import { MediaGenerationApi } from '../../credentials/MediaGenerationApi.credentials';
import { SERVICES, SPECIFICATION } from '../../nodes/MediaGeneration/service/services';
import { type Published, PUBLISHED, StandIn } from '../service/standIns';
import { executeContext, startTrigger, startWorkflow, TRIGGER, TRIGGER_PATH } from './engine';
import { useProcessedData } from './processedData';
import { passTime, virtualTime } from './time';
import { deliver, outcome } from './webhook';

/**
 * Each service of the table against a stand-in that answers as the service's own pages say, through the credential alone:
 * *Service* and *API Key*.
 */

const KEY = 'key-of-these-tests-1234';
const PNG = Buffer.from(
	'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
	'base64',
);
const MEDIA = 'https://media.test';
const FILE = { url: `${MEDIA}/1.png`, bytes: PNG };

useProcessedData();
virtualTime();
afterEach(() => nock.cleanAll());

/** What the host of the files was asked. */
let mediaHeaders: Array<Record<string, unknown>> = [];

/** Sets the stand-in up at the service's own address. */
function standIn(published: Published): StandIn {
	const service = new StandIn(published, KEY, FILE);
	const { origin, pathname } = new URL(published.base);
	const prefix = pathname.replace(/\/$/, '');
	const handle = (method: string) =>
		function (this: nock.ReplyFnContext, uri: string, body: unknown): nock.ReplyFnResult {
			const headers = this.req.headers as Record<string, unknown>;
			const json = body === '' ? undefined : (body as IDataObject);
			const reply = service.answer(method, uri.slice(prefix.length), headers, json);
			return [reply.status, reply.body, reply.headers ?? {}];
		};
	nock(origin).persist().get(/.*/).reply(handle('GET'));
	nock(origin).persist().post(/.*/).reply(handle('POST'));
	mediaHeaders = [];
	nock(MEDIA)
		.persist()
		.get('/1.png')
		.reply(function () {
			mediaHeaders.push(this.req.headers as Record<string, unknown>);
			return [200, PNG, { 'content-type': 'image/png' }];
		});
	return service;
}

/** The credential, as a user fills it in. */
const credentialOf = ({ service, base }: Published, apiKey = KEY) => ({
	service,
	baseUrl: service === '' ? base : '',
	apiKey,
});

const image = ({ model }: Published, prompt: string, more: IDataObject = {}) => ({
	parameters: { model: { mode: 'id', value: model }, prompt, ...more },
});

const run = async (
	published: Published,
	prompt: string,
	more: IDataObject = {},
	credential = credentialOf(published),
) => await passTime(startWorkflow({ node: image(published, prompt, more), credential }).result);

/** The credential's test as n8n makes it: its request with the credential's `authenticate`, then its rules. */
async function test(credential: IDataObject): Promise<string> {
	const type = new MediaGenerationApi();
	const { request, rules = [] } = type.test;
	if (typeof type.authenticate !== 'function') throw new Error('authenticate is no function');
	const given = { ...request, baseURL: String(credential.baseUrl) } as IHttpRequestOptions;
	const options = await type.authenticate(credential as never, given);
	const { helpers } = executeContext();
	try {
		await helpers.httpRequest({ ...options, json: true });
		return 'OK';
	} catch (error) {
		const status = Number((error as { response?: { status?: number } }).response?.status);
		const rule = rules.find(
			({ type: kind, properties }) => kind === 'responseCode' && properties.value === status,
		);
		return rule?.properties.message ?? `HTTP ${status}`;
	}
}

describe.each(
	PUBLISHED.map((published) => [published.service || 'the specification', published] as const),
)('%s', (_name, published) => {
	it('has a key that the credential tells from a wrong one, and a balance, or none', async () => {
		const service = standIn(published);
		expect(await test(credentialOf(published))).toBe('OK');
		expect(await test(credentialOf(published, 'wrong'))).toContain("this 'API Key' (401)");
		expect(service.asked.map(({ path }) => path)).toEqual(Array(2).fill(published.balance.path));
		const given = { node: { type: 'mediaGenerationCredits' }, credential: credentialOf(published) };
		const { output, error } = await passTime(startWorkflow(given).result);
		if (published.balance.status === undefined) {
			expect(output[0]?.json).toMatchObject({ balance: published.balance.value });
		} else {
			expect(error?.message).toContain('does not tell the balance');
		}
	});

	it('makes a task with its file: waits out one refusal, and a task that is not ready is not failed', async () => {
		const service = standIn(published);
		Object.assign(service, { busyFor: 1, course: { reads: 2 } });
		const { output, error } = await run(published, 'x');
		expect(error).toBeUndefined();
		const [id = ''] = service.ids;
		expect(output).toHaveLength(1);
		expect(output[0]?.json).toMatchObject({
			taskId: published.shownId?.(id) ?? id,
			state: 'SUCCESS',
			resultUrls: [published.file ? published.base + published.file(id) : FILE.url],
		});
		expect(output[0]?.binary?.data).toMatchObject({ mimeType: 'image/png' });
		const orders = service.asked.filter(({ method }) => method === 'POST');
		expect(orders.map(({ status }) => status)).toEqual([429, 200]);
		expect(service.unknown).toEqual([]);
		expect(mediaHeaders).toHaveLength(published.file ? 0 : 1);
		expect(JSON.stringify([mediaHeaders, output])).not.toContain(KEY);
	});

	it('says why a task has failed, also with its row pasted for another service', async () => {
		const row = { ...SPECIFICATION, ...SERVICES[published.service], base: published.base };
		const other = { service: 'other', interface: JSON.stringify(row), baseUrl: '', apiKey: KEY };
		for (const credential of [credentialOf(published), other]) {
			nock.cleanAll();
			const service = standIn(published);
			service.course = { end: 'failed' };
			const { error } = await run(published, 'fails', {}, credential);
			const [id = ''] = service.ids;
			const shown = published.shownId?.(id) ?? id;
			expect(error?.message).toBe(`${published.reason} (task ${shown})`);
			expect(service.unknown).toEqual([]);
		}
	});

	it('starts a workflow once by its callback, or names no address where it has none', async () => {
		const service = standIn(published);
		const callbackUrl = `https://n8n.test${TRIGGER_PATH}`;
		const { output } = await run(published, 'x', { completion: 'trigger', callbackUrl });
		const [id = ''] = service.ids;
		expect(output[0]?.json).toMatchObject({ taskId: published.shownId?.(id) ?? id });
		expect(service.callbacks).toHaveLength(published.callback === undefined ? 0 : 1);
		expect(service.unknown).toEqual([]);
		const [address] = service.callbacks;
		if (address === undefined) return;
		const { searchParams } = new URL(address);
		const body = published.callbackBody?.(id) ?? published.done(id, FILE.url);
		const started: INodeExecutionData[][] = [];
		for (let delivery = 0; delivery < 2; delivery++) {
			const arrived = deliver({
				body,
				query: Object.fromEntries(searchParams),
				token: searchParams.get('token'),
				credential: credentialOf(published),
				node: `trigger ${published.service}`,
			});
			const { starts = [] } = (await passTime(outcome(arrived))) as { starts?: IDataObject[] };
			const items = starts.map((json) => ({ json }));
			if (items.length === 0) continue;
			const trigger = {
				node: { ...TRIGGER, id: `trigger ${published.service}` },
				credential: credentialOf(published),
			};
			started.push((await passTime(startTrigger(trigger, items))).output);
		}
		expect(started.flat().map(({ json }) => [json.taskId, json.state])).toEqual([
			[published.shownId?.(id) ?? id, 'SUCCESS'],
		]);
	});
});

describe('what could lead elsewhere', () => {
	const wavespeed = PUBLISHED.find(({ service }) => service === 'wavespeed') as Published;

	it.each(['../../x', 'https://evil.test/x'])(
		'a model %s is refused before a request',
		async (model) => {
			const service = standIn(wavespeed);
			const { error } = await run({ ...wavespeed, model }, 'x');
			expect(error?.message).toContain('cannot be a part of the address');
			expect(service.asked).toEqual([]);
		},
	);

	it('a prompt {key} is sent as it is written', async () => {
		const order = (prompt: string) => ({ prompt: prompt === 'x' ? '{key} {model}' : prompt });
		const service = standIn({ ...wavespeed, order });
		const { output } = await run(wavespeed, '{key} {model}');
		expect([output[0]?.json.state, service.unknown]).toEqual(['SUCCESS', []]);
		expect(JSON.stringify(service.asked.map(({ body }) => body))).not.toContain(KEY);
	});

	it.each(['', '{"create":"//evil.test","read":"/a"}'])(
		'an interface %j that is no row is refused by the test and before a task',
		async (row) => {
			const service = standIn(wavespeed);
			const credential = { ...credentialOf(wavespeed), service: 'other', interface: row };
			await expect(test(credential)).rejects.toThrow("The 'Interface' of the");
			const { error } = await run(wavespeed, 'x', {}, credential);
			expect(error?.message).toContain("The 'Interface' of the");
			expect(service.asked).toEqual([]);
		},
	);
});
