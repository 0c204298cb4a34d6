import { FileTooLargeError } from 'n8n-core';
import type { IBinaryData } from 'n8n-workflow';
import nock from '../../nock';
import { pipeline, Readable } from 'node:stream';

import { Downloader } from '../../../nodes/MediaGeneration/report/download';
import { listen } from '../../listen';
import { API_KEY, executeContext } from '../../workflow/engine';
import { Stopped, systemClock } from '../../../nodes/MediaGeneration/shared/clock';
import { turn } from '../../virtualTime';
import { caught, FakeClock } from '../support';
import { MINUTE } from '../../durations';

const HOST = 'https://media.example.com';
const PNG = Buffer.from('iVBORw0KGgo=', 'base64');

const context = () => executeContext();

/** For a second only, so that nothing is tried again unless a test says so. */
const downloader = (of = context(), maxBytes?: number, clock = systemClock, tryMs = 1000) =>
	new Downloader(of, clock, tryMs, maxBytes);

/** The files of a task with these results. */
async function filesBy(
	of: Downloader,
	resultUrls = [`${HOST}/1.png`],
	taskId = 'task-1',
	deadline?: number,
): Promise<IBinaryData[]> {
	const task = { taskId, state: 'SUCCESS', resultUrls, creditsConsumed: null, record: {} } as const;
	const output = { download: true, binaryField: 'data', split: false };
	const [item] = await of.itemsOf(task, {}, { output }, deadline);
	return Object.values(item?.binary ?? {});
}

const downloadOf = async (paths: string[], maxBytes?: number) =>
	await filesBy(
		downloader(context(), maxBytes),
		paths.map((path) => HOST + path),
	);

/** The host answers with this media, whatever is asked for. */
const host = (
	body: Buffer = PNG,
	headers: Record<string, string> = { 'content-type': 'image/png' },
) => nock(HOST).get(/.*/).reply(200, body, headers);

it('a result is readable to the last byte', async () => {
	host();
	const [file] = await downloadOf(['/1.png']);
	expect(Buffer.from(file?.data ?? '', 'base64')).toEqual(PNG);
});

describe('the name and the type of a file', () => {
	it.each([
		['/a/lighthouse.png', 'image/png', 'task-1.png', 'image/png'],
		['/a/cat.png?X-Signature=abc&x=/y.gif', 'image/png', 'task-1.png', 'image/png'],
		['/a/cat', 'image/png', 'task-1.png', 'image/png'],
		['/a/cat', 'video/mp4; codecs="avc1"', 'task-1.mp4', 'video/mp4'],
		['/a/1', 'IMAGE/JPEG', 'task-1.jpg', 'image/jpeg'],
		['/a/cat.webp', 'application/octet-stream', 'task-1.webp', 'image/webp'],
		['/a/cat.png', '', 'task-1.png', 'image/png'],
		['/a/1.mov', 'binary/octet-stream', 'task-1.mov', 'video/quicktime'],
		['/a/1.glb', 'model/gltf-binary', 'task-1.glb', 'model/gltf-binary'],
		['/a/1', 'application/octet-stream', 'task-1', 'application/octet-stream'],
		['/', 'image/png', 'task-1.png', 'image/png'],
		['/a/%E0%A4%A.png', 'image/png', 'task-1.png', 'image/png'],
	])('at %s with %s are %s and %s', async (path, type, fileName, mimeType) => {
		host(PNG, { 'content-type': type });
		expect(await downloadOf([path])).toMatchObject([{ fileName, mimeType }]);
	});

	it('of a result that is a data URI are those that it names', async () => {
		const url = `data:image/png;base64,${PNG.toString('base64')}`;
		const [file] = await filesBy(new Downloader(context()), [url]);
		expect(file).toMatchObject({ fileName: 'task-1.png', mimeType: 'image/png' });
		expect(Buffer.from(file?.data ?? '', 'base64')).toEqual(PNG);
	});

	it('of several results differ by their place', async () => {
		host();
		host();
		expect(await downloadOf(['/a.png', '/b.png'])).toMatchObject([
			{ fileName: 'task-1_0.png' },
			{ fileName: 'task-1_1.png' },
		]);
	});

	it.each([
		['x'.repeat(300), `${'x'.repeat(120)}.png`],
		['../../etc/passwd', '_.._etc_passwd.png'],
		['x\0y?z', 'x_y_z.png'],
	])('hold nothing that a file system could take amiss of %j', async (taskId, fileName) => {
		host();
		const [file] = await filesBy(new Downloader(context()), undefined, taskId);
		expect(file?.fileName).toBe(fileName);
	});
});

it('follows a redirect to the host that really has the file', async () => {
	nock(HOST).get('/1.png').reply(302, '', { location: 'https://cdn.example.com/2.png' });
	nock('https://cdn.example.com').get('/2.png').reply(200, PNG, { 'content-type': 'image/png' });
	expect(await downloadOf(['/1.png'])).toMatchObject([{ mimeType: 'image/png' }]);
});

describe('what cannot be downloaded', () => {
	it.each([
		['says that it is too large', 10, { 'content-length': '3000000' }],
		['turns out too large', 3 * 1024 ** 2, {}],
	])('a file that %s is not taken', async (_what, bytes, headers) => {
		host(Buffer.alloc(bytes), { 'content-type': 'image/png', ...headers });
		await expect(downloadOf(['/1.png'], 2 * 1024 ** 2)).rejects.toThrow(
			`The result is larger than 2 MiB: ${HOST}/1.png`,
		);
	});

	it('of a file that turns out too large no more is fetched', async () => {
		nock.enableNetConnect('127.0.0.1');
		let pulled = 0;
		const mebibytes = function* () {
			for (; pulled < 200; pulled++) yield Buffer.alloc(1024 ** 2);
		};
		const { url, close } = await listen((_request, response) => {
			pipeline(Readable.from(mebibytes()), response, () => {});
		});
		const taken = filesBy(downloader(context(), 2 * 1024 ** 2), [`${url}/1.png`]);
		await expect(taken).rejects.toThrow('larger than 2 MiB');
		await close();
		nock.disableNetConnect();
		expect(pulled).toBeLessThan(100);
	});

	/** A host that sends a little every so many seconds, and after a while nothing more; time passes as it is told. */
	async function sluggish(seconds: number, times: number) {
		const clock = new FakeClock();
		let sent = 0;
		const body = new Readable({ read: () => undefined });
		clock.sleep = async (ms) => {
			clock.pass(ms);
			if (sent < times && clock.now() >= seconds * 1000 * sent) {
				sent++;
				body.push(PNG);
			} else if (sent === times && times > 1) {
				sent++;
				body.push(null);
			}
			await turn();
		};
		const host = context();
		host.helpers.httpRequest = async () => ({ statusCode: 200, headers: {}, body });
		const file = filesBy(downloader(host, undefined, clock, 30_000));
		return { file, body, clock };
	}

	it('a transfer that stands still for a minute is broken off', async () => {
		const { file, body, clock } = await sluggish(0, 1);
		await expect(file).rejects.toMatchObject({
			message: `The download broke off after 8 bytes: ${HOST}/1.png`,
			description: expect.stringContaining('paid for') as string,
		});
		expect(body.destroyed).toBe(true);
		expect(clock.now()).toBeLessThan(90_000);
	});

	it('a slow transfer is not, however long it takes', async () => {
		const { file, clock } = await sluggish(50, 10);
		expect(await file).toHaveLength(1);
		expect(clock.now()).toBeGreaterThan(400_000);
	});

	it('a file of exactly the limit is taken', async () => {
		host(Buffer.alloc(1024 ** 2, 7));
		expect(await downloadOf(['/1.png'], 1024 ** 2)).toHaveLength(1);
	});

	describe('because n8n does not keep it', () => {
		/** n8n's storage takes some of the file, or all, and fails. */
		const refusing = (error: Error, takesAll = true) => {
			const refuser = context();
			refuser.helpers.prepareBinaryData = async (stream) => {
				for await (const chunk of stream as Readable) {
					if (!takesAll && chunk !== undefined) break;
				}
				throw error;
			};
			return filesBy(downloader(refuser));
		};

		const tooLarge = new FileTooLargeError({
			fileSizeMb: 3,
			maxFileSizeMb: 2,
			fileId: 'file-1',
			fileName: '1.png',
		});
		const full = Object.assign(new Error('ENOSPC: no space left on device'), { code: 'ENOSPC' });
		const notKept = `n8n could not keep the result of 3 MiB: ${HOST}/1.png`;

		it.each<[string, Error, boolean, string, string]>([
			[
				'names the setting of n8n',
				tooLarge,
				true,
				notKept,
				'N8N_BINARY_DATA_DATABASE_MAX_FILE_SIZE',
			],
			[
				'says what n8n said where the disk is full',
				full,
				false,
				'n8n could not keep the result',
				'no space left on device',
			],
			[
				'still tells a connection that broke off',
				new Error('aborted'),
				false,
				'The download broke off after',
				'paid for',
			],
		])('%s', async (_what, error, takesAll, message, description) => {
			host(Buffer.alloc(3 * 1024 ** 2));
			await expect(refusing(error, takesAll)).rejects.toMatchObject({
				message: expect.stringContaining(message) as string,
				description: expect.stringContaining(description) as string,
			});
		});
	});

	it.each(['not a url', '', '//media.example.com/1.png', 'file:///etc/passwd'])(
		'%j is no address of a result',
		async (url) => {
			await expect(filesBy(downloader(), [url])).rejects.toThrow(
				'The host of the result cannot be reached',
			);
		},
	);
});

describe('what may come later', () => {
	/** A host that answers each request with the next of these; the clock goes on by itself. */
	function answering(
		...answers: Array<{ status?: number; headers?: object; body?: Readable } | Error>
	) {
		const clock = new FakeClock();
		const { sleep } = clock;
		clock.sleep = async (ms, signal) => {
			await sleep.call(clock, ms, signal);
			// Streams go on meanwhile.
			for (let turns = 0; turns < 5; turns++) await turn();
		};
		const requests: number[] = [];
		const host = context();
		host.helpers.httpRequest = async (options) => {
			expect(JSON.stringify(options)).not.toContain(API_KEY);
			requests.push(clock.now());
			const answer = answers[Math.min(requests.length, answers.length) - 1] ?? {};
			if (answer instanceof Error) throw answer;
			const { status = 200, headers = { 'content-type': 'image/png' }, body } = answer;
			return { statusCode: status, headers, body: body ?? Readable.from([PNG]) };
		};
		const patient = downloader(host, undefined, clock, 10 * MINUTE);
		const file = async (deadline?: number) =>
			await filesBy(patient, undefined, undefined, deadline);
		return { file, host, clock, requests };
	}

	const broken = () =>
		Readable.from(
			(function* () {
				yield PNG;
				throw Object.assign(new Error('aborted'), { code: 'ECONNRESET' });
			})(),
		);

	const codes = ['ECONNRESET', 'ETIMEDOUT', 'ECONNABORTED', 'ECONNREFUSED', 'EAI_AGAIN', 'EPIPE'];

	it.each([...codes, 408, 425, 429, 500, 502, 503, 504])(
		'is tried again after %s',
		async (what) => {
			const lost = Object.assign(new Error('No'), { code: what });
			const { file, requests } = answering(typeof what === 'number' ? { status: what } : lost, {});
			expect(await file()).toHaveLength(1);
			expect(requests).toHaveLength(2);
		},
	);

	it('is tried again from its beginning after a transfer that broke off', async () => {
		const { file, requests } = answering({ body: broken() }, { body: broken() }, {});
		const [kept] = await file();
		expect(Buffer.from(kept?.data ?? '', 'base64')).toEqual(PNG);
		expect(requests).toHaveLength(3);
	});

	it('is tried ever more slowly, once a minute at most', async () => {
		const { file, requests } = answering({ status: 503 });
		await expect(file()).rejects.toThrow('HTTP 503');
		const pauses = requests.slice(1).map((at, index) => (at - (requests[index] ?? 0)) / 1000);
		expect(pauses.slice(0, 7)).toEqual([2, 4, 8, 16, 32, 60, 60]);
	});

	it.each([
		['in seconds', () => '90'],
		['as a date', () => new Date(Date.now() + 91_000).toUTCString()],
	])('is not tried before the host says (%s)', async (_how, retryAfter) => {
		const headers = { 'retry-after': retryAfter() };
		const { file, requests } = answering({ status: 429, headers }, {});
		await file();
		expect(requests[1]).toBeGreaterThanOrEqual(85_000);
	});

	it('is not tried again after the deadline', async () => {
		const { file, requests, clock } = answering({ status: 503 });
		await expect(file(10_000)).rejects.toThrow('HTTP 503');
		expect(requests).toEqual([0, 2000, 6000]);
		expect(clock.now()).toBeLessThanOrEqual(10_000);
	});

	it.each([400, 401, 403, 404, 410, 416, 501])('is no file with HTTP %d', async (status) => {
		const { file, requests } = answering({ status }, {});
		await expect(file()).rejects.toMatchObject({
			message: `The result could not be downloaded (HTTP ${status}): ${HOST}/1.png`,
			description: expect.stringContaining('paid for') as string,
		});
		expect(requests).toHaveLength(1);
	});

	it('is not waited for once the execution was stopped', async () => {
		const stop = new AbortController();
		const { host, clock } = answering({ status: 503 });
		host.getExecutionCancelSignal = () => stop.signal;
		const { sleep } = clock;
		clock.sleep = async (ms, signal) => {
			stop.abort();
			await sleep.call(clock, ms, signal);
		};
		const ended = filesBy(downloader(host, undefined, clock, MINUTE));
		expect(await caught(async () => await ended)).toBeInstanceOf(Stopped);
	});

	it('closes the connection of each try', async () => {
		const bodies = [503, 503, 200].map(() => Readable.from([PNG]));
		const answers = bodies.map((body, index) => ({ status: index < 2 ? 503 : 200, body }));
		await answering(...answers).file();
		expect(bodies.map(({ destroyed }) => destroyed)).toEqual([true, true, true]);
	});
});
