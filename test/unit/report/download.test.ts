import { FileTooLargeError } from 'n8n-core';
import type { IBinaryData, IDataObject } from 'n8n-workflow';
import nock from '../../nock';
import { Readable } from 'node:stream';

import { fileStem } from '../../../nodes/MediaGeneration/report/taskItems';
import { Downloader, PassingTrouble } from '../../../nodes/MediaGeneration/report/download';
import { API_KEY, executeContext } from '../../workflow/engine';
import type { TaskRecord } from '../../../nodes/MediaGeneration/service/taskRecord';
import { clock, Stopped } from '../../../nodes/MediaGeneration/shared/clock';
import { EPOCH } from '../../virtualTime';
import { passTime, time, virtualTime } from '../../workflow/time';
import { caught } from '../support';
import { HOUR, MINUTE } from '../../durations';

const HOST = 'https://media.example.com';
const URL = `${HOST}/1.png`;
const PNG = Buffer.from('iVBORw0KGgo=', 'base64');
type Bytes = Buffer<ArrayBuffer>;
const DONE = { state: 'SUCCESS', creditsConsumed: null, record: {} } as const;
const MiB = 1024 ** 2;
// A node that stops has no output to look at.
const PAID = {
	description: expect.stringMatching(/is done and paid for.* Get Task\.$/) as string,
};

virtualTime();

/** Milliseconds since the test began. */
const elapsed = () => clock.now() - EPOCH;

const bytesOf = (file?: IBinaryData) => Buffer.from(file?.data ?? '', 'base64');

interface Given {
	url?: string;
	taskId?: string;
	context?: ReturnType<typeof executeContext>;
	maxBytes?: number;
	/** A second where left out, so that nothing is tried again. */
	tryMs?: number;
	deadline?: number;
	downloader?: Downloader;
	stem?: string;
	/** Brings the same links where left out. */
	readAgain?: () => Promise<TaskRecord | undefined>;
}

/** The file of a task with one result. */
async function download({
	url = URL,
	taskId = 'task-1',
	context = executeContext(),
	maxBytes,
	tryMs = 1000,
	deadline = Infinity,
	downloader = new Downloader(context, undefined, tryMs, maxBytes),
	stem = '3-a-cat-1f2e',
	readAgain,
}: Given = {}): Promise<IBinaryData | undefined> {
	const task = { ...DONE, taskId, resultUrls: [url] };
	const readTask = readAgain ?? (async () => task);
	const wanted = { stem, giveUpAt: deadline, readAgain: readTask };
	const [file] = (await passTime(downloader.filesOf(task, wanted))) ?? [];
	return file;
}

/** The host answers with this media, whatever is asked for. */
const hostSends = (body = PNG, headers: Record<string, string> = { 'content-type': 'image/png' }) =>
	nock(HOST).get(/.*/).reply(200, body, headers);

describe('the name and the type of a file', () => {
	const STEM = '3-a-cat-1f2e';
	const begins = (...parts: Array<string | number[]>): Bytes =>
		Buffer.concat(parts.map((part) => Buffer.from(part as string, 'latin1')));
	const SIZE = [0, 0, 0, 24];
	const JPEG = begins([0xff, 0xd8, 0xff, 0xe0], 'rest of a picture');
	const UNKNOWN = begins('neither of these, but long enough');

	const WEBP = '/a/x.webp?y=/z.gif';
	const png = begins(PNG.toString('latin1'), 'IHDR0000');
	const longSvg = `\n<?xml version="1.0"?><!-- ${'x'.repeat(300)} --><svg>`;
	/** A picture whose major brand says only that it is a picture. */
	const heif = begins([0, 0, 0, 28], 'ftypmif1', [0, 0, 0, 0], 'mif1');
	const moving = begins([0, 0, 0, 24], 'ftypmsf1', [0, 0, 0, 0], 'msf1');

	it.each<[Bytes, string, string, string, path?: string]>([
		// The bytes say it, whatever the host says.
		[JPEG, 'image/png', 'jpg', 'image/jpeg'],
		[png, '', 'png', 'image/png'],
		[png, 'text/html', 'png', 'image/png'],
		[begins('RIFF', SIZE, 'WEBPVP8 '), 'image/png', 'webp', 'image/webp'],
		[begins('RIFF', SIZE, 'WAVEfmt '), 'audio/x-wav', 'wav', 'audio/wav'],
		[begins('GIF89a0000000000'), 'image/png', 'gif', 'image/gif'],
		[begins(SIZE, 'ftypisom0000'), 'application/octet-stream', 'mp4', 'video/mp4'],
		[begins(SIZE, 'ftypisom0000'), 'audio/mp4', 'm4a', 'audio/mp4'],
		[begins(SIZE, 'ftypqt  0000'), 'video/mp4', 'mov', 'video/quicktime'],
		[begins([0x1a, 0x45, 0xdf, 0xa3], '000000000000'), '', 'webm', 'video/webm'],
		[begins([0x1a, 0x45, 0xdf, 0xa3], '0000'), 'audio/webm', 'webm', 'audio/webm'],
		[begins('ID3', SIZE, '00000000000'), 'text/css', 'mp3', 'audio/mpeg'],
		[begins([0xff, 0xfb], '00000000000000'), '', 'mp3', 'audio/mpeg'],
		[heif, 'image/avif', 'avif', 'image/avif'],
		[heif, '', 'heif', 'image/heif'],
		[moving, 'image/heic', 'heic', 'image/heic'],
		[begins([0, 0, 0, 8], 'wide0000mdat'), '', 'mov', 'video/quicktime'],
		[begins('glTF', [2, 0, 0, 0]), 'text/plain', 'glb', 'model/gltf-binary'],
		[begins('%PDF-1.7'), '', 'pdf', 'application/pdf'],
		[begins([0xff, 0xf1], '0000'), 'application/octet-stream', 'aac', 'audio/aac'],
		[begins('BM', SIZE, [0, 0, 0, 0]), '', 'bmp', 'image/bmp'],
		[begins('<svg xmlns="x"></svg>'), 'text/plain', 'svg', 'image/svg+xml'],
		[begins(longSvg), 'text/html', 'svg', 'image/svg+xml'],
		// Then the host does, then the address.
		[UNKNOWN, 'image/jpg', 'jpg', 'image/jpeg'],
		[UNKNOWN, 'IMAGE/X-PNG; q=1', 'png', 'image/png'],
		[UNKNOWN, 'model/gltf-binary', 'glb', 'model/gltf-binary'],
		[UNKNOWN, 'audio/x-thing', 'webp', 'audio/x-thing'],
		[UNKNOWN, 'constructor', 'webp', 'constructor'],
		[UNKNOWN, 'application/octet-stream', 'webp', 'image/webp'],
		[UNKNOWN, '', 'webp', 'image/webp'],
		[begins('x'), '', 'webp', 'image/webp'],
		[UNKNOWN, 'audio/aac', 'aac', 'audio/aac', '/a/1'],
		[UNKNOWN, 'application/zip', 'zip', 'application/zip', '/a/1'],
		[UNKNOWN, 'image/bmp', 'bmp', 'image/bmp', '/a/1'],
		[UNKNOWN, 'image/jxl', 'jxl', 'image/jxl', '/a/1'],
		[UNKNOWN, 'image/svg+xml', 'svg', 'image/svg+xml', '/a/1'],
		[UNKNOWN, 'video/quicktime', 'mov', 'video/quicktime', '/a/1'],
		[UNKNOWN, 'model/obj', 'obj', 'model/obj', '/a/1'],
		[UNKNOWN, 'application/x-subrip', 'srt', 'application/x-subrip', '/a/1'],
		[UNKNOWN, 'audio/x-caf', 'caf', 'audio/x-caf', '/a/1'],
		[UNKNOWN, 'image/vnd.radiance', '', 'image/vnd.radiance', '/a/1'],
		[begins('1\n00:00:01,000'), 'text/plain', 'srt', 'application/x-subrip', '/a/1.srt'],
		[begins('WEBVTT'), 'text/plain', 'vtt', 'text/vtt', '/a/1.vtt'],
		[begins('<g/>'), 'text/plain; charset=utf-8', 'svg', 'image/svg+xml', '/a/1.svg'],
		[begins('A caption'), 'text/plain', 'txt', 'text/plain', '/a/1.txt'],
		[UNKNOWN, 'binary/octet-stream', '', 'application/octet-stream', '/a/1'],
		[UNKNOWN, 'binary/octet-stream', 'jpg', 'image/jpeg', '/a/1.jpeg'],
		[UNKNOWN, 'binary/octet-stream', 'mov', 'video/quicktime', '/a/%E0%A4%A.mov'],
	])('of %j with %j are .%s and %s', async (body, type, extension, mimeType, path = WEBP) => {
		hostSends(body, { 'content-type': type });
		const file = await download({ url: HOST + path });
		const fileName = extension === '' ? STEM : `${STEM}.${extension}`;
		expect(file).toMatchObject({ fileName, mimeType });
		expect(bytesOf(file)).toEqual(body);
	});

	it('of a file whose bytes come one by one are told by them', async () => {
		const context = executeContext();
		const body = new Readable({ read: () => undefined });
		context.helpers.httpRequest = async () => ({ statusCode: 200, headers: {}, body });
		for (const [at, byte] of [...JPEG].entries()) {
			setTimeout(() => body.push(Buffer.from([byte])), at * 100);
		}
		setTimeout(() => body.push(null), 10_000);
		const file = await download({ context });
		expect(file).toMatchObject({ fileName: `${STEM}.jpg`, mimeType: 'image/jpeg' });
		expect(bytesOf(file)).toEqual(JPEG);
	});

	it('of a result that is a data URI are those that it names', async () => {
		const file = await download({ url: `data:image/webp;base64,${UNKNOWN.toString('base64')}` });
		expect(file).toMatchObject({ fileName: `${STEM}.webp`, mimeType: 'image/webp' });
		expect(bytesOf(file)).toEqual(UNKNOWN);
	});
});

it.each<[string, string]>([
	['data:text/plain,A%20caption', 'A caption'],
	['data:,A caption', 'A caption'],
	['data:;base64,QUJD', 'ABC'],
	['data:application/json;base64,e30=', '{}'],
	['data:image/svg+xml;utf8,<svg></svg>', '<svg></svg>'],
	['data:image/png;base64,QUJD%3D', 'ABC'],
	['data:image/svg+xml,<a b="50%">%C3%A9 50% of%20it</a>', '<a b="50%">é 50% of it</a>'],
	['data:image/svg+xml,<svg>%', '<svg>%'],
])('a data URI is its own file: %s', async (url, content) => {
	expect(bytesOf(await download({ url })).toString()).toBe(content);
});

it('no message repeats a long address', async () => {
	hostSends(PNG, { 'content-type': 'text/html' });
	nock(HOST).persist().get(/.*/).reply(404, 'x'.repeat(100_000));
	const url = `${HOST}/${'x'.repeat(5000)}`;
	const { message } = await caught(async () => await download({ url, maxBytes: 1 }));
	expect(message).toContain('… (5026 characters)');
	expect(message.length).toBeLessThan(1200);
});

describe('the beginning of a name', () => {
	const stem = (prompt: unknown, taskId = 'task-7b1c-00001f2e', number = '3') =>
		fileStem(taskId, {}, { input: { prompt } as IDataObject }, number);

	it.each<[unknown, string]>([
		['A blue whale', '3-a-blue-whale-1f2e'],
		[
			'  Photo: a red cat that sleeps in the rain',
			'3-photo-a-red-cat-that-sleeps-in-the-rain-1f2e',
		],
		['Zażółć «gęślą» jaźń 🌊', '3-zażółć-gęślą-jaźń-1f2e'],
		['一只蓝鲸', '3-一只蓝鲸-1f2e'],
		['../../etc/passwd', '3-etc-passwd-1f2e'],
		['x\0y?z \ud83d', '3-x-y-z-1f2e'],
		['w'.repeat(300), `3-${'w'.repeat(40)}-1f2e`],
		['…', '3-1f2e'],
		[undefined, '3-1f2e'],
		[{ a: 1 }, '3-1f2e'],
	])('for %j is %s', (prompt, expected) => {
		expect(stem(prompt)).toBe(expected);
	});

	it.each([
		['5', '3-a-5'],
		['../..', '3-a'],
		['task_12', '3-a-12'],
		['0d9a4b1c-77aa-4f00-9c3e-5b6f7a8b9CDE', '3-a-9cde'],
	])('of task %j is %s', (taskId, expected) => {
		expect(stem('A', taskId)).toBe(expected);
	});

	it('takes the prompt from the record where nothing was sent, and has no number on the trigger', () => {
		const inside = { data: { state: 'SUCCESS', input: { prompt: 'A fox' } } };
		expect(fileStem('t-1f2e', inside)).toBe('a-fox-1f2e');
		expect(fileStem('t-1f2e', { prompt: 'A fox' }, {}, '1')).toBe('1-a-fox-1f2e');
	});

	it('is the same for all results of a task, which are numbered', async () => {
		hostSends();
		hostSends();
		const task = { ...DONE, taskId: 't', resultUrls: [URL, `${HOST}/2.png`] };
		const wanted = { stem: 'a', giveUpAt: Infinity, readAgain: async () => task };
		const files = new Downloader(executeContext(), undefined).filesOf(task, wanted);
		const names = (await passTime(files)).map(({ fileName }) => fileName);
		expect(names).toEqual(['a-1.png', 'a-2.png']);
	});
});

describe('a file', () => {
	it('that is a data URI is cut in the message of a download that fails', async () => {
		const url = `data:image/png;base64,${'A'.repeat(2 * MiB)}`;
		const { message } = await caught(async () => await download({ url, maxBytes: MiB }));
		expect(message).toMatch(/^The result is larger than 1 MiB: data:image/);
		expect(message.length).toBeLessThan(200);
	});

	it('of exactly the limit is taken', async () => {
		hostSends(Buffer.alloc(MiB, 7));
		expect(bytesOf(await download({ maxBytes: MiB }))).toHaveLength(MiB);
	});

	it.each([
		['says that it is too large', { 'content-length': '3000000' }, 0],
		['turns out too large', {}, 10],
	])('that %s is fetched no further', async (_what, headers, mostMebibytes) => {
		let pulled = 0;
		const body = Readable.from(
			(function* () {
				for (; pulled < 200; pulled++) yield Buffer.alloc(MiB);
			})(),
			{ highWaterMark: 1 },
		);
		const context = executeContext();
		context.helpers.httpRequest = async () => ({ statusCode: 200, headers, body });
		const message = `The result is larger than 2 MiB: ${URL}`;
		await expect(download({ context, maxBytes: 2 * MiB })).rejects.toThrow(message);
		expect(pulled).toBeLessThanOrEqual(mostMebibytes);
	});

	const NOWHERE = ['not a url', '', '//media.example.com/1.png', 'file:///etc/passwd'];
	it.each(NOWHERE)('is not looked for at %j', async (url) => {
		const message = expect.stringContaining('The host of the result cannot be reached') as string;
		await expect(download({ url })).rejects.toMatchObject({ message, ...PAID });
	});
});

describe('a transfer', () => {
	/** A host that sends a chunk every so many seconds, so often, and then no more; the last one ends it if there are several. */
	function sluggish(seconds: number, times: number, chunk = PNG) {
		const body = new Readable({ read: () => undefined });
		const send = (left: number) => {
			if (left > 0) body.push(chunk);
			else if (times > 1) body.push(null);
			if (left > 0) setTimeout(() => send(left - 1), seconds * 1000);
		};
		send(times);
		const context = executeContext();
		context.helpers.httpRequest = async () => ({ statusCode: 200, headers: {}, body });
		return { file: async () => await download({ context, tryMs: 30_000 }), body };
	}

	it.each([
		['stands still for a minute', 0, 1, 8],
		['brings a few bytes a second', 1, 100_000, 600],
	])('that %s is broken off', async (_what, seconds, times, most) => {
		const { file, body } = sluggish(seconds, times);
		const error = await caught(file);
		expect(error).toMatchObject(PAID);
		expect(error.message).toMatch(/^The download broke off after \d+ bytes: /);
		expect(Number(/\d+/.exec(error.message)?.[0])).toBeLessThanOrEqual(most);
		expect(body.destroyed).toBe(true);
		expect(elapsed()).toBeLessThan(90_000);
	});

	it('that is slow is not, however long it takes', async () => {
		const { file } = sluggish(50, 10, Buffer.alloc(64 * 1024, 7));
		expect(bytesOf(await file())).toHaveLength(10 * 64 * 1024);
		expect(elapsed()).toBeGreaterThan(400_000);
	});

	it('whose answer does not begin within a minute is given up, and the request is ended', async () => {
		const context = executeContext();
		let signal: AbortSignal | undefined;
		context.helpers.httpRequest = async ({ abortSignal }) => {
			signal = abortSignal as AbortSignal;
			return await new Promise(() => undefined);
		};
		const error = await caught(async () => await download({ context, tryMs: 30_000 }));
		expect(error.message).toContain('The host of the result cannot be reached');
		expect(signal?.aborted).toBe(true);
		expect(elapsed()).toBe(60_000);
	});
});

const EXPIRED = 'Link expired';
it.each<[number, object, string, string]>([
	[
		422,
		{ detail: [{ msg: EXPIRED }] },
		'could not be downloaded (HTTP 422)',
		'read the task again',
	],
	[200, { error: EXPIRED }, 'host answered with a message instead of media', 'Open the URL'],
])(
	'the message has the words of the host, and a way out stands below (%d, %j)',
	async (...given) => {
		const [status, body, message, wayOut] = given;
		nock(HOST).persist().get(/.*/).reply(status, body);
		await expect(download()).rejects.toMatchObject({
			message: `The result ${message}: ${URL}. The host says: ${EXPIRED}`,
			description: expect.stringContaining(wayOut) as string,
		});
	},
);

describe('where n8n does not keep a file', () => {
	const sizes = { fileSizeMb: 3, maxFileSizeMb: 2 };
	const tooLarge = new FileTooLargeError({ ...sizes, fileId: 'file-1', fileName: '1.png' });
	const full = Object.assign(new Error('ENOSPC: no space left on device'), { code: 'ENOSPC' });
	const notKept = `n8n could not keep the result of 3 MiB: ${URL}`;
	const brokeOff = 'The download broke off after';

	it.each<[string, Error, takesAll: boolean, message: string, description: string]>([
		['the setting', tooLarge, true, notKept, 'Get Task.'],
		['the setting', tooLarge, true, notKept, 'N8N_BINARY_DATA_DATABASE_MAX_FILE_SIZE'],
		['what n8n said', full, false, 'n8n could not keep the result', 'no space left on device'],
		['a connection that broke off', new Error('aborted'), false, brokeOff, 'Get Task.'],
	])('the error names %s', async (_what, error, takesAll, message, description) => {
		hostSends(Buffer.alloc(3 * MiB));
		const context = executeContext();
		context.helpers.prepareBinaryData = async (stream) => {
			for await (const chunk of stream as Readable) {
				if (!takesAll && chunk !== undefined) break;
			}
			throw error;
		};
		await expect(download({ context })).rejects.toMatchObject({
			message: expect.stringContaining(message) as string,
			description: expect.stringContaining(description) as string,
		});
	});
});

describe('what may come later', () => {
	/** A host that answers each request with the next of these. */
	function answering(
		...answers: Array<{ status?: number; headers?: object; body?: Readable } | Error>
	) {
		const requests: number[] = [];
		const context = executeContext();
		context.helpers.httpRequest = async (options) => {
			expect(JSON.stringify(options)).not.toContain(API_KEY);
			requests.push(elapsed());
			const answer = answers[Math.min(requests.length, answers.length) - 1] ?? {};
			if (answer instanceof Error) throw answer;
			const { status = 200, headers = { 'content-type': 'image/png' }, body } = answer;
			return { statusCode: status, headers, body: body ?? Readable.from([PNG]) };
		};
		const file = async (deadline?: number) =>
			await download({ context, tryMs: 10 * MINUTE, ...(deadline && { deadline }) });
		return { file, context, requests };
	}

	const CODES = ['ECONNRESET', 'ETIMEDOUT', 'ECONNABORTED', 'ECONNREFUSED', 'EAI_AGAIN', 'EPIPE'];
	const PASSING = [...CODES, 408, 425, 429, 499, 500, 501, 502, 503, 504, 520, 522];
	it.each(PASSING)('is tried again after %s', async (what) => {
		const lost = Object.assign(new Error('No'), { code: what });
		const { file, requests } = answering(typeof what === 'number' ? { status: what } : lost, {});
		expect(await file()).toBeDefined();
		expect(requests).toHaveLength(2);
	});

	it('is tried ever more slowly, once a minute at most', async () => {
		const { file, requests } = answering({ status: 503 });
		await expect(file()).rejects.toThrow('HTTP 503');
		const pauses = requests.slice(1).map((at, index) => (at - (requests[index] ?? 0)) / 1000);
		expect(pauses.slice(0, 7)).toEqual([2, 4, 8, 16, 32, 60, 60]);
	});

	it('is not tried before the moment that the host says', async () => {
		const headers = { 'retry-after': new Date(Date.now() + 91_000).toUTCString() };
		const { file, requests } = answering({ status: 429, headers }, {});
		await file();
		expect(requests[1]).toBeGreaterThanOrEqual(85_000);
	});

	it('is not tried again after the deadline', async () => {
		const { file, requests } = answering({ status: 503 });
		await expect(file(EPOCH + 10_000)).rejects.toThrow('HTTP 503');
		expect(requests).toEqual([0, 2000, 6000]);
		expect(elapsed()).toBeLessThanOrEqual(10_000);
	});

	it.each([
		['one try where the file before it has failed a moment ago', 10 * MINUTE, 1],
		['further tries where the file before it has failed long ago', HOUR, 2],
	])('has %s', async (_what, beginsAt, tries) => {
		const { context, requests } = answering({
			get status() {
				const isDown = elapsed() < 11 * MINUTE || elapsed() < beginsAt + 1000;
				return isDown ? 503 : 200;
			},
		});
		const downloader = new Downloader(context, undefined, 10 * MINUTE);
		await expect(download({ downloader })).rejects.toThrow('HTTP 503');
		time.jump(beginsAt - elapsed());
		const before = requests.length;
		const second = download({ downloader });
		if (tries === 1) await expect(second).rejects.toThrow('HTTP 503');
		else expect(bytesOf(await second)).toEqual(PNG);
		expect(requests.length - before).toBe(tries);
	});

	const page = {
		headers: { 'content-type': 'text/html' },
		body: Readable.from([Buffer.from('<html>Log in</html>')]),
	};
	const headers = { 'content-type': 'image/png', 'content-range': 'bytes 0-7/200' };
	const NO_FILE: Array<[string, object]> = [
		...[400, 401, 403, 404, 410, 416].map((status): [string, object] => [`${status}`, { status }]),
		['a page', page],
		['a part', { status: 206 }],
		['a part with 206', { status: 206, headers }],
		['a part with 200', { status: 200, headers }],
		['nothing', { body: Readable.from([]) }],
	];

	it.each(NO_FILE)('of a fresh link is tried again after %s', async (_what, answer) => {
		const { file, requests } = answering(answer, {});
		expect(bytesOf(await file())).toEqual(PNG);
		expect(requests).toHaveLength(2);
	});

	const task = { ...DONE, taskId: 'task-1', resultUrls: [URL] };
	const files = async (context: ReturnType<typeof executeContext>, more: object = {}) => {
		const wanted = { stem: 'a', giveUpAt: Infinity, readAgain: async () => task };
		return await new Downloader(context, undefined).filesOf(task, { ...wanted, ...more });
	};

	it('comes last at the end of the two minutes', async () => {
		const { context, requests } = answering({ status: 404 });
		await caught(async () => void (await passTime(files(context))));
		expect(requests).toEqual([0, 2, 6, 14, 30, 62, 120].map((seconds) => seconds * 1000));
	});

	it('of a link that was tried for two minutes is final at once', async () => {
		const { context, requests } = answering({ status: 404 });
		const error = await caught(async () => {
			await files(context, { triedSince: EPOCH - 2 * MINUTE, readAgain: async () => task });
		});
		expect(error).not.toBeInstanceOf(PassingTrouble);
		expect(requests).toHaveLength(1);
	});

	it('is not waited for once the execution was stopped', async () => {
		const stop = new AbortController();
		const { file, context } = answering({ status: 503 });
		context.getExecutionCancelSignal = () => stop.signal;
		setTimeout(() => stop.abort(), 1_000);
		await expect(file()).rejects.toBeInstanceOf(Stopped);
	});
});

describe('a link', () => {
	/** A host whose links live for so long; each read gives a new one. */
	function signed(liveMs: number, fileMs = 0) {
		const reads: string[] = [];
		const asked: Array<[taskId: string, status: number]> = [];
		const context = executeContext();
		context.helpers.httpRequest = async ({ url }) => {
			const [, taskId = '', at] = /\/([^/?]+)\?at=(\d+)/.exec(String(url)) ?? [];
			const statusCode = clock.now() - Number(at) <= liveMs ? 200 : 403;
			asked.push([taskId, statusCode]);
			if (statusCode === 200) await new Promise((resolve) => setTimeout(resolve, fileMs));
			return { statusCode, headers: { 'content-type': 'image/png' }, body: Readable.from([PNG]) };
		};
		const task = (taskId: string) => ({
			...DONE,
			taskId,
			resultUrls: [`${HOST}/${taskId}?at=${clock.now()}`],
		});
		const readAgain = (taskId: string) => async () => {
			reads.push(taskId);
			return task(taskId);
		};
		const downloader = new Downloader(context, undefined);
		const fetch = async (each: ReturnType<typeof task>, more: object = {}) =>
			await downloader.filesOf(each, {
				...{ stem: 'a', giveUpAt: Infinity },
				...{ readAgain: readAgain(each.taskId), ...more },
			});
		return { reads, asked, task, fetch };
	}

	it('of an earlier turn is read anew before the first try', async () => {
		const { task, fetch, reads, asked } = signed(5_000);
		const old = task('t1');
		time.jump(60_000);
		expect(await passTime(fetch(old, { triedSince: EPOCH }))).toHaveLength(1);
		expect([reads, asked]).toEqual([['t1'], [['t1', 200]]]);
	});

	it('that could not be read anew may come later', async () => {
		const { task, fetch } = signed(5_000);
		const old = task('t1');
		time.jump(60_000);
		const wanted = { triedSince: EPOCH, giveUpAt: clock.now(), readAgain: async () => undefined };
		await expect(passTime(fetch(old, wanted))).rejects.toBeInstanceOf(PassingTrouble);
	});

	it('arrives, as all 60 of a batch, although a link lives for a minute', async () => {
		const { task, fetch, asked } = signed(MINUTE, 20_000);
		const tasks = Array.from({ length: 60 }, (_, index) => task(`t${index}`));
		const files = await passTime(Promise.all(tasks.map(async (each) => await fetch(each))));
		expect(files.flat()).toHaveLength(60);
		expect(asked.filter(([, status]) => status !== 200)).toEqual([]);
	});
});
