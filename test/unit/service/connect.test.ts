import type { RequestListener } from 'node:http';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import nock from '../../nock';

import { connect } from '../../../nodes/MediaGeneration/service/connect';
import { Stopped } from '../../../nodes/MediaGeneration/shared/clock';
import { listen } from '../../listen';
import { API_KEY, executeContext, SERVICE } from '../../workflow/engine';
import { caught, visibleText } from '../support';

/** The service through n8n's own HTTP helper, its credential included, which may be changed afterwards. */
async function connected(baseUrl = `${SERVICE}/`, signal?: AbortSignal) {
	const credential = { baseUrl, apiKey: API_KEY };
	const { client } = await connect(executeContext({ credential }, signal));
	return { client, credential };
}

const READ = '/api/generate/task-1';
const TASK = { model: 'vendor/model', input: { prompt: 'A lighthouse' } };
const read = async (baseUrl?: string, signal?: AbortSignal, limitMs?: number) =>
	await (await connected(baseUrl, signal)).client.readTask('task-1', limitMs);
const create = async (task: object = {}) =>
	await (await connected()).client.createTask({ ...TASK, ...task });

afterEach(() => nock.enableNetConnect('127.0.0.1'));

it('a request with more characters than JavaScript can hold was certainly not sent', async () => {
	const toJSON = () => {
		throw new RangeError('Invalid string length');
	};
	const error = await caught(async () => await create({ input: { file: { toJSON } } }));
	expect(error.message).toBe('The request is too large to be sent');
	expect(error).toMatchObject({ taken: 'no', isToSendAgain: false });
});

describe('a key that was changed while the node runs', () => {
	const keys: string[] = [];
	/** A service that takes the new key only. */
	const service = () =>
		nock(SERVICE)
			.persist()
			.get('/api/credits')
			.reply(function () {
				const key = String(this.req.headers.authorization).replace('Bearer ', '');
				keys.push(key);
				return key.endsWith('new') ? [200, { balance: 42 }] : [401, { error: 'No' }];
			});
	beforeEach(() => {
		keys.length = 0;
	});

	it('is used from the first refusal on, for all requests that were refused together', async () => {
		service();
		const { client, credential } = await connected();
		credential.apiKey = 'sk-live-new';
		const all = await Promise.all([client.readCredits(), client.readCredits()]);
		expect([...all, await client.readCredits()]).toEqual(Array(3).fill({ balance: 42 }));
		expect(keys).toEqual([API_KEY, API_KEY, ...Array<string>(3).fill('sk-live-new')]);
	});

	it('creates nothing where the execution is stopped while it is looked up', async () => {
		const stop = new AbortController();
		const context = executeContext({}, stop.signal);
		const { client } = await connect(context);
		jest.spyOn(context, 'getCredentials').mockImplementation(async () => {
			stop.abort();
			return await Promise.resolve({ baseUrl: SERVICE, apiKey: 'sk-live-new' } as never);
		});
		nock(SERVICE).post('/api/generate').reply(401, { error: 'No' });
		const second = nock(SERVICE).post('/api/generate').reply(200, { taskId: 'task-1' });
		await expect(client.createTask(TASK)).rejects.toMatchObject({ kind: 'unauthorized' });
		expect(second.isDone()).toBe(false);
		nock.cleanAll();
	});

	it('is cut out of what the service says, as the old one is', async () => {
		const { client, credential } = await connected();
		credential.apiKey = 'sk-live-changed-meanwhile';
		nock(SERVICE).get(READ).reply(401, 'No');
		nock(SERVICE)
			.get(READ)
			.reply(200, { state: 'PENDING', keys: [API_KEY, credential.apiKey] });
		expect(await client.readTask('task-1')).toMatchObject({ record: { keys: ['***', '***'] } });
		nock(SERVICE).get(READ).reply(400, `Not for ${credential.apiKey}`);
		const error = await caught(async () => await client.readTask('task-1'));
		expect(visibleText(error)).not.toContain(credential.apiKey);
	});

	it.each([
		['was not changed', {}],
		['cannot be used', { apiKey: '' }],
		['is for another base URL', { apiKey: 'sk-live-new', baseUrl: 'https://other.example.com' }],
	])('is not sent where it %s', async (_what, change) => {
		service();
		const { client, credential } = await connected();
		Object.assign(credential, change);
		await expect(client.readCredits()).rejects.toMatchObject({ kind: 'unauthorized' });
		expect(keys).toEqual([API_KEY]);
	});
});

describe('an answer', () => {
	it.each([301, 302, 303, 307, 308])('that redirects (%d) is not followed', async (statusCode) => {
		const evil = 'https://evil.example.com/';
		const location = `${SERVICE}/v2/api/generate`;
		const elsewhere = nock(evil).get(/.*/).reply(200, { state: 'SUCCESS' });
		const again = nock(location).post('').reply(200, { taskId: 'task-1' });
		nock(SERVICE).get(READ).reply(statusCode, '', { location: evil });
		nock(SERVICE).post('/api/generate').reply(statusCode, '', { location });
		await expect(read()).rejects.toMatchObject({ statusCode });
		await expect(create()).rejects.toMatchObject({ statusCode });
		expect([elsewhere.isDone(), again.isDone()]).toEqual([false, false]);
	});

	it('that is JSON is read whatever its content type says', async () => {
		nock(SERVICE).get(READ).reply(200, '{"state":"PENDING"}', { 'content-type': 'text/plain' });
		expect(await read()).toMatchObject({ state: 'PENDING' });
	});
});

describe('where no answer comes', () => {
	const failing = (code: string, more: object = {}) =>
		nock(SERVICE)
			.get(READ)
			.replyWithError(Object.assign(new Error(`${code} api.example.com`), { code, ...more }));

	it.each([
		['ECONNREFUSED', 'connect', 'unreachable', 'no'],
		['ENOTFOUND', 'getaddrinfo', 'unreachable', 'no'],
		['ESERVICEUNREACH', 'connect', 'unreachable', 'no'],
		['ETIMEDOUT', 'connect', 'unreachable', 'no'],
		['ECONNRESET', 'read', 'noAnswer', 'unknown'],
		// The route may be lost while the answer is on its way.
		['ESERVICEUNREACH', 'read', 'noAnswer', 'unknown'],
		['ENETUNREACH', 'write', 'noAnswer', 'unknown'],
		['ETIMEDOUT', 'read', 'noAnswer', 'unknown'],
		['ETIMEDOUT', undefined, 'noAnswer', 'unknown'],
		['ERR_SOMETHING_NEW', undefined, 'noAnswer', 'unknown'],
		['ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED', undefined, 'noAnswer', 'unknown'],
	])('%s of %s is %s: the request was taken: %s', async (code, syscall, kind, taken) => {
		failing(code, { syscall });
		const description = expect.stringContaining(
			kind === 'noAnswer' ? '' : `said: ${code}.`,
		) as string;
		await expect(read()).rejects.toMatchObject({ kind, taken, description });
	});

	it.each([
		['unreachable', ['connect', 'connect']],
		['noAnswer', ['connect', 'read']],
	])('of a host with several addresses it is %s after %j', async (kind, syscalls) => {
		const code = 'ECONNREFUSED';
		const errors = syscalls.map((syscall) => Object.assign(new Error(code), { code, syscall }));
		failing('ECONNREFUSED', { errors });
		await expect(read()).rejects.toMatchObject({ kind });
	});

	it('the error has nothing of the request, and so not the key', async () => {
		nock(SERVICE)
			.get(READ)
			.replyWithError(new Error(`socket of ${API_KEY}`));
		expect(visibleText(await caught(read))).not.toContain(API_KEY);
	});

	it.each(['CERT_HAS_EXPIRED', 'DEPTH_ZERO_SELF_SIGNED_CERT', 'ERR_TLS_CERT_ALTNAME_INVALID'])(
		'%s says that the certificate is not trusted',
		async (code) => {
			failing(code);
			const message = expect.stringContaining('certificate is not trusted') as string;
			await expect(read()).rejects.toMatchObject({ kind: 'unreachable', message });
		},
	);
});

describe('on a real socket', () => {
	let server: Awaited<ReturnType<typeof listen>>;
	let onRequest: RequestListener;

	beforeAll(async () => {
		nock.restore();
		server = await listen((request, response) => onRequest(request, response));
	});
	afterAll(async () => await server.close());

	it.each<[string, RequestListener]>([
		['a service that does not answer in time', () => {}],
		['a connection that is closed without an answer', (request) => request.socket.destroy()],
		[
			'a body that ends before its announced length',
			(_request, response) => {
				response.writeHead(200, { 'content-length': 100 });
				response.write('{"state":"SUCCESS"', () => response.destroy());
			},
		],
		[
			'a body that comes byte by byte',
			(_request, response) => {
				response.writeHead(200, { 'content-type': 'application/json' });
				const drip = setInterval(() => response.write(' '), 20);
				response.once('close', () => clearInterval(drip));
			},
		],
		[
			'a head that comes byte by byte',
			({ socket }) => {
				socket.write('HTTP/1.1 200 OK\r\nx: ');
				const drip = setInterval(() => socket.write('x'), 20);
				socket.once('close', () => clearInterval(drip));
			},
		],
	])('%s is no answer, and its connection ends', async (_what, listener) => {
		let closed: Promise<unknown> | undefined;
		onRequest = (request, response) => {
			// Not `once` of Node.js: a reset ends the connection, too.
			closed = new Promise((resolve) => request.socket.once('close', resolve));
			listener(request, response);
		};
		await expect(read(server.url, undefined, 300)).rejects.toMatchObject({
			kind: 'noAnswer',
			description: expect.stringContaining('took too long') as string,
		});
		await closed;
	});

	it('an answer of any size ends, with a message that says so', async () => {
		let sent = 0;
		onRequest = (_request, response) => {
			response.writeHead(200, { 'content-type': 'application/json' });
			const more = () => {
				sent++;
				if (!response.destroyed && sent < 100) response.write(Buffer.alloc(1024 ** 2), more);
			};
			more();
		};
		const message = 'The answer is larger than 32 MiB';
		await expect(read(server.url)).rejects.toMatchObject({ kind: 'unexpectedAnswer', message });
		expect(sent).toBeLessThan(60);
	});

	it("the execution's stop ends a read, and lets a create come to its end", async () => {
		const stop = new AbortController();
		onRequest = (_request, response) => {
			stop.abort();
			setTimeout(() => response.end('{"taskId":"task-1","state":"PENDING"}'), 50);
		};
		const { client } = await connected(server.url, stop.signal);
		expect(await client.createTask(TASK)).toMatchObject({ taskId: 'task-1' });
		await expect(client.readTask('task-1')).rejects.toBeInstanceOf(Stopped);
	});

	it.each<[string, string, (socket: Socket) => void]>([
		['that is closed before TLS stands', 'unreachable', (socket) => socket.end()],
		[
			'to a port without TLS',
			'unreachable',
			(socket) => socket.once('data', () => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n')),
		],
		// A reset later on looks the same.
		[
			'that is reset in its handshake',
			'noAnswer',
			(socket) => socket.once('data', () => socket.resetAndDestroy()),
		],
	])('an https connection %s is %s', async (_what, kind, onConnection) => {
		const plain = createServer((socket) => onConnection(socket.on('error', () => {})));
		await new Promise<void>((resolve) => plain.listen(0, '127.0.0.1', resolve));
		const { port } = plain.address() as AddressInfo;
		await expect(read(`https://127.0.0.1:${port}`)).rejects.toMatchObject({ kind });
		plain.close();
	});

	it('a host name that nobody has, and a closed port, are unreachable', async () => {
		const { port, close } = await listen(() => {});
		await close();
		for (const host of ['nobody.invalid', `127.0.0.1:${port}`, `localhost:${port}`]) {
			await expect(read(`http://${host}`)).rejects.toMatchObject({ kind: 'unreachable' });
		}
	});
});
