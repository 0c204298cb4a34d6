import * as http from 'node:http';
import type { AddressInfo } from 'node:net';
import nock from '../../nock';

import type { ServiceClient } from '../../../nodes/MediaGeneration/service/client';
import { connect } from '../../../nodes/MediaGeneration/service/connect';
import type { ServiceError } from '../../../nodes/MediaGeneration/service/serviceError';
import { API_KEY, executeContext } from '../../workflow/engine';
import { caught, visibleText } from '../support';

const HOST = 'https://api.example.com';

/** The service through n8n's own HTTP helper, its credential included. */
async function clientOf(baseUrl = HOST, signal?: AbortSignal): Promise<ServiceClient> {
	const credential = { baseUrl, apiKey: API_KEY };
	const { client } = await connect(executeContext({ node: {}, credential }, signal));
	return client;
}

const TASK = { model: 'vendor/model', input: { prompt: 'A lighthouse' } };

afterEach(() => nock.enableNetConnect('127.0.0.1'));

describe('a request', () => {
	const asOurs = { reqheaders: { authorization: `Bearer ${API_KEY}` } };

	it('to create carries the key and a JSON body', async () => {
		const scope = nock(HOST, {
			reqheaders: { ...asOurs.reqheaders, 'content-type': /^application\/json/ },
		})
			.post('/api/generate', { ...TASK, webhook_url: 'https://n8n.example.com/x' })
			.reply(200, { taskId: 'task-1' });
		const created = await (
			await clientOf()
		).createTask({ ...TASK, webhookUrl: 'https://n8n.example.com/x' });
		expect(created.taskId).toBe('task-1');
		expect(scope.isDone()).toBe(true);
	});

	it('to read carries the key', async () => {
		nock(HOST, asOurs).get('/api/generate/task-1').reply(200, { state: 'SUCCESS', resultUrls: [] });
		expect(await (await clientOf()).readTask('task-1')).toMatchObject({ state: 'SUCCESS' });
	});

	it('for the credits carries the key', async () => {
		nock(HOST, asOurs).get('/api/credits').reply(200, { balance: 42 });
		expect(await (await clientOf()).readCredits()).toEqual({ balance: 42 });
	});

	it('goes below the path prefix of the base URL', async () => {
		nock(HOST, asOurs).get('/media/v1/api/credits').reply(200, { balance: 42 });
		const client = await clientOf(`${HOST}/media/v1/`);
		expect(await client.readCredits()).toEqual({ balance: 42 });
	});

	it.each([
		['a/b', '/api/generate/a%2Fb'],
		['../credits', '/api/generate/..%2Fcredits'],
		['a?b=1', '/api/generate/a%3Fb%3D1'],
		['a#b', '/api/generate/a%23b'],
		['%2e%2e', '/api/generate/%252e%252e'],
	])('for the id %j arrives at %s', async (id, path) => {
		const paths: string[] = [];
		nock(HOST)
			.get(/.*/)
			.reply(200, (uri) => {
				paths.push(uri);
				return { state: 'PENDING' };
			});
		await (await clientOf()).readTask(id);
		expect(paths).toEqual([path]);
	});
});

describe('a key that was changed while the node runs', () => {
	const connected = async () => {
		const credential = { baseUrl: HOST, apiKey: API_KEY };
		const { client } = await connect(executeContext({ node: {}, credential }));
		return { client, credential };
	};
	const keys: string[] = [];
	/** A service that takes the new key only. */
	const service = () =>
		nock(HOST)
			.persist()
			.get('/api/credits')
			.reply(function () {
				const key = String(this.req.headers.authorization);
				keys.push(key);
				return key.endsWith('new') ? [200, { balance: 42 }] : [401, { error: 'No' }];
			});
	beforeEach(() => {
		keys.length = 0;
	});

	it('is used from the first refusal on', async () => {
		service();
		const { client, credential } = await connected();
		credential.apiKey = 'sk-live-new';
		expect([await client.readCredits(), await client.readCredits()]).toEqual(
			Array(2).fill({ balance: 42 }),
		);
		expect(keys).toEqual([`Bearer ${API_KEY}`, 'Bearer sk-live-new', 'Bearer sk-live-new']);
	});

	it('is cut out of what the service says, as the old one is', async () => {
		const { client, credential } = await connected();
		credential.apiKey = 'sk-live-changed-meanwhile';
		nock(HOST).get('/api/generate/task-1').reply(401, 'No');
		nock(HOST)
			.get('/api/generate/task-1')
			.reply(200, { state: 'PENDING', keys: [API_KEY, credential.apiKey] });
		expect(await client.readTask('task-1')).toMatchObject({ record: { keys: ['***', '***'] } });
		nock(HOST).get('/api/generate/task-1').reply(400, `Not for ${credential.apiKey}`);
		const error = await caught(async () => await client.readTask('task-1'));
		expect(visibleText(error)).not.toContain(credential.apiKey);
	});

	it('that cannot be used is a key that was refused', async () => {
		service();
		const { client, credential } = await connected();
		credential.apiKey = '';
		await expect(client.readCredits()).rejects.toMatchObject({ kind: 'unauthorized' });
		expect(keys).toEqual([`Bearer ${API_KEY}`]);
	});

	it('is not tried at another base URL', async () => {
		service();
		const { client, credential } = await connected();
		Object.assign(credential, { apiKey: 'sk-live-new', baseUrl: 'https://other.example.com' });
		await expect(client.readCredits()).rejects.toMatchObject({ kind: 'unauthorized' });
		expect(keys).toEqual([`Bearer ${API_KEY}`]);
	});

	it('is the only one that is sent a second time', async () => {
		service();
		const { client } = await connected();
		await expect(client.readCredits()).rejects.toMatchObject({ kind: 'unauthorized' });
		expect(keys).toEqual([`Bearer ${API_KEY}`]);
	});
});

describe('an answer', () => {
	it.each([400, 401, 402, 403, 404, 410, 422, 429, 500, 502, 503, 504])(
		'with HTTP %d is an error with that status and the words of the service',
		async (status) => {
			nock(HOST)
				.get('/api/generate/task-1')
				.reply(status, { error: { message: 'So it is' } });
			const client = await clientOf();
			await expect(client.readTask('task-1')).rejects.toMatchObject({
				name: 'ServiceError',
				statusCode: status,
				message: expect.stringContaining('So it is') as string,
			});
		},
	);

	it.each([301, 302, 303, 307, 308])(
		'that redirects (HTTP %d) is not followed, and the key goes nowhere else',
		async (status) => {
			const elsewhere = nock('https://evil.example.com').get(/.*/).reply(200, { state: 'SUCCESS' });
			nock(HOST)
				.get('/api/generate/task-1')
				.reply(status, '', { location: 'https://evil.example.com/' });
			const client = await clientOf();
			await expect(client.readTask('task-1')).rejects.toMatchObject({ statusCode: status });
			expect(elsewhere.isDone()).toBe(false);
		},
	);

	it('that redirects a create is not followed either', async () => {
		const again = nock(HOST).post('/v2/api/generate').reply(200, { taskId: 'task-1' });
		nock(HOST)
			.post('/api/generate')
			.reply(307, '', { location: `${HOST}/v2/api/generate` });
		const client = await clientOf();
		await expect(client.createTask(TASK)).rejects.toMatchObject({ statusCode: 307 });
		expect(again.isDone()).toBe(false);
	});

	it.each([
		['a web page', '<html><body>Log in</body></html>', { 'content-type': 'text/html' }],
		['empty', '', {}],
		['cut short', '{"state": "SUCC', { 'content-type': 'application/json' }],
	])('that is %s is no record', async (_what, body, headers) => {
		nock(HOST).get('/api/generate/task-1').reply(200, body, headers);
		await expect((await clientOf()).readTask('task-1')).rejects.toMatchObject({
			kind: 'unexpectedAnswer',
		});
	});

	it('that is JSON is read whatever its content type says', async () => {
		nock(HOST)
			.get('/api/generate/task-1')
			.reply(200, '{"state":"PENDING"}', { 'content-type': 'text/plain' });
		expect(await (await clientOf()).readTask('task-1')).toMatchObject({ state: 'PENDING' });
	});

	it('to a create that is an empty 204 names no task', async () => {
		nock(HOST).post('/api/generate').reply(204);
		await expect((await clientOf()).createTask(TASK)).rejects.toMatchObject({
			kind: 'unexpectedAnswer',
		});
	});
});

describe('where no answer comes', () => {
	const failing = (code: string, syscall?: string) =>
		nock(HOST)
			.get('/api/generate/task-1')
			.replyWithError(
				Object.assign(new Error(`${code} api.example.com`), { code, ...(syscall && { syscall }) }),
			);

	it.each([
		['ECONNREFUSED', 'connect', 'the connection was refused'],
		['ENOTFOUND', 'getaddrinfo', 'the host name was not found'],
		['EAI_AGAIN', 'getaddrinfo', 'the host name was not found'],
		['EHOSTUNREACH', 'connect', 'there is no route to the host'],
		['ETIMEDOUT', 'connect', 'timed out'],
	])('%s of %s is certainly no request taken, and says that %s', async (code, syscall, words) => {
		failing(code, syscall);
		await expect((await clientOf()).readTask('task-1')).rejects.toMatchObject({
			kind: 'unreachable',
			certainlyNotTaken: true,
			description: expect.stringContaining(words) as string,
		});
	});

	it.each([
		['ECONNRESET', 'read'],
		['EPIPE', 'write'],
		// The route may be lost while the answer is on its way.
		['EHOSTUNREACH', 'read'],
		['EHOSTUNREACH', undefined],
		['ENETUNREACH', 'write'],
		['ETIMEDOUT', 'read'],
		['ETIMEDOUT', undefined],
		['ERR_SOMETHING_NEW', undefined],
		['ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED', undefined],
	])('%s of %s leaves it open whether the request was taken', async (code, syscall) => {
		failing(code, syscall);
		await expect((await clientOf()).readTask('task-1')).rejects.toMatchObject({
			kind: 'noAnswer',
			certainlyNotTaken: false,
			isTransient: true,
		});
	});

	it('a host of several addresses, none of which takes a connection, is unreachable', async () => {
		const refused = (syscall: string) =>
			Object.assign(new Error('ECONNREFUSED'), { code: 'ECONNREFUSED', syscall });
		const answers: string[] = [];
		for (const syscalls of [
			['connect', 'connect'],
			['connect', 'read'],
		]) {
			const errors = Object.assign(new AggregateError(syscalls.map(refused)), {
				code: 'ECONNREFUSED',
			});
			nock(HOST).get('/api/generate/task-1').replyWithError(errors);
			const error = await caught(async () => await (await clientOf()).readTask('task-1'));
			answers.push((error as ServiceError).kind);
		}
		expect(answers).toEqual(['unreachable', 'noAnswer']);
	});

	it.each(['CERT_HAS_EXPIRED', 'DEPTH_ZERO_SELF_SIGNED_CERT', 'ERR_TLS_CERT_ALTNAME_INVALID'])(
		'%s says that the certificate is not trusted',
		async (code) => {
			failing(code);
			await expect((await clientOf()).readTask('task-1')).rejects.toMatchObject({
				kind: 'unreachable',
				message: expect.stringContaining('certificate is not trusted') as string,
			});
		},
	);

	it('a stopped execution is told from a lost connection', async () => {
		const stop = new AbortController();
		nock(HOST)
			.get('/api/generate/task-1')
			.reply(() => {
				stop.abort();
				return [200, { state: 'PENDING' }];
			});
		const client = await clientOf(HOST, stop.signal);
		await expect(client.readTask('task-1')).rejects.toMatchObject({ kind: 'cancelled' });
	});

	it('a base URL that cannot be used is refused before any request', async () => {
		await expect(clientOf('api.example.com')).rejects.toThrow('is not an address with https://');
	});
});

describe('on a real socket', () => {
	let server: http.Server;
	let baseUrl: string;
	let onRequest: http.RequestListener;

	beforeAll(async () => {
		nock.restore();
		server = http.createServer((request, response) => onRequest(request, response));
		await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
		baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
	});
	afterAll(() => {
		server.closeAllConnections();
		return new Promise((resolve) => server.close(resolve));
	});

	it('a service that does not answer in time is no answer', async () => {
		onRequest = () => {};
		await expect((await clientOf(baseUrl)).readTask('task-1', 30)).rejects.toMatchObject({
			kind: 'noAnswer',
			description: expect.stringContaining('timed out') as string,
		});
	});

	it('a connection that is closed without an answer is no answer', async () => {
		onRequest = (request) => request.socket.destroy();
		await expect((await clientOf(baseUrl)).readTask('task-1')).rejects.toMatchObject({
			kind: 'noAnswer',
		});
	});

	it('a host name that nobody has is unreachable', async () => {
		const client = await clientOf('http://nobody.invalid');
		await expect(client.readTask('task-1')).rejects.toMatchObject({ kind: 'unreachable' });
	});

	it("the execution's stop ends a read, and lets a create come to its end", async () => {
		const stop = new AbortController();
		onRequest = (_request, response) => {
			stop.abort();
			setTimeout(() => response.end('{"taskId":"task-1","state":"PENDING"}'), 50);
		};
		const client = await clientOf(baseUrl, stop.signal);
		expect(await client.createTask(TASK)).toMatchObject({ taskId: 'task-1' });
		await expect(client.readTask('task-1')).rejects.toMatchObject({ kind: 'cancelled' });
	});

	it('a body that ends before its announced length is no answer', async () => {
		onRequest = (_request, response) => {
			response.writeHead(200, { 'content-length': 100 });
			response.write('{"state":"SUCCESS"', () => response.destroy());
		};
		await expect((await clientOf(baseUrl)).readTask('task-1')).rejects.toMatchObject({
			isTransient: true,
			certainlyNotTaken: false,
		});
	});

	it.each(['127.0.0.1', 'localhost'])('a closed port of %s is unreachable', async (host) => {
		const closed = http.createServer();
		await new Promise<void>((resolve) => closed.listen(0, '127.0.0.1', resolve));
		const { port } = closed.address() as AddressInfo;
		await new Promise((resolve) => closed.close(resolve));
		const client = await clientOf(`http://${host}:${port}`);
		await expect(client.readTask('task-1')).rejects.toMatchObject({ kind: 'unreachable' });
	});
});

describe('the API key', () => {
	beforeAll(() => nock.activate());

	it.each([
		['is refused and echoed', () => nock(HOST).get('/api/credits').reply(401, `Bad ${API_KEY}`)],
		['meets a redirect', () => nock(HOST).get('/api/credits').reply(302, '', { location: '/' })],
		[
			'meets a lost connection',
			() =>
				nock(HOST)
					.get('/api/credits')
					.replyWithError(new Error(`socket of ${API_KEY}`)),
		],
		['meets a web page', () => nock(HOST).get('/api/credits').reply(200, `<p>${API_KEY}</p>`)],
	])('stands nowhere in the error where it %s', async (_what, arrange) => {
		arrange();
		const client = await clientOf();
		const error = await caught(async () => await client.readCredits());
		expect(visibleText(error)).not.toContain(API_KEY);
	});
});
