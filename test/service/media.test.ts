import { createHash } from 'node:crypto';

import { client, IMAGE_MODEL, service, useService, VIDEO_MODEL } from './support';

useService({ settings: { latencyMs: 60_000 } });

/** A finished task and the address of its first result. */
function finish(model: string, input: object): string {
	const { taskId, record } = service.createTask(model, input);
	service.complete(taskId);
	return record.resultUrls?.[0] ?? '';
}
const picture = (input: object = {}) => finish(IMAGE_MODEL, { prompt: 'A lighthouse', ...input });

const download = async (url: string) => {
	const response = await fetch(url);
	expect(response.status).toBe(200);
	return Buffer.from(await response.arrayBuffer());
};
const digest = (file: Buffer) => createHash('sha256').update(file).digest('hex');

/** An MP4 file without its header, in which the time of the encoding stands. */
const framesOf = (file: Buffer) => file.subarray(0, file.indexOf('moov'));

/** Seconds of an MP4 file: the movie header holds the ticks in a second, then the ticks in all. */
function secondsOf(file: Buffer): number {
	const header = file.indexOf('mvhd') + 'mvhd'.length;
	return file.readUInt32BE(header + 16) / file.readUInt32BE(header + 12);
}

describe('media', () => {
	it('are PNG pictures for an image model', async () => {
		const url = picture();
		const response = await fetch(url);
		expect(response.headers.get('content-type')).toBe('image/png');
		const file = Buffer.from(await response.arrayBuffer());
		expect(file.subarray(0, 8).toString('hex')).toBe('89504e470d0a1a0a');
		expect([file.readUInt32BE(16), file.readUInt32BE(20)]).toEqual([960, 720]);
	});

	it('are drawn from the prompt: the same prompt gives the same picture, another one another', async () => {
		const [first, same, other] = await Promise.all(
			['A lighthouse', 'A lighthouse', 'A harbour'].map((prompt) => download(picture({ prompt }))),
		);
		expect(digest(same as Buffer)).toBe(digest(first as Buffer));
		expect(digest(other as Buffer)).not.toBe(digest(first as Buffer));
	});

	it('differ between the results of one task', async () => {
		service.configure({ resultCount: 2 });
		const { taskId, record } = service.createTask(IMAGE_MODEL, { prompt: 'A lighthouse' });
		service.complete(taskId);
		const files = await Promise.all(record.resultUrls?.map(download) ?? []);
		expect(new Set(files.map(digest)).size).toBe(2);
	});

	it('are MP4 videos as long as asked for, for a video model', async () => {
		const response = await fetch(finish(VIDEO_MODEL, { prompt: 'Waves', duration: 2 }));
		expect(response.headers.get('content-type')).toBe('video/mp4');
		const file = Buffer.from(await response.arrayBuffer());
		expect(file.subarray(4, 8).toString()).toBe('ftyp');
		expect(file.includes('avc1')).toBe(true);
		expect(secondsOf(file)).toBeCloseTo(2, 1);
	});

	it('show the reference image: a picture of this service or a data URI, in any field', async () => {
		const reference = picture();
		const dataUri = `data:image/png;base64,${(await download(reference)).toString('base64')}`;
		const video = async (input: object) => {
			const url = finish(VIDEO_MODEL, { prompt: 'Waves', duration: 0.5, ...input });
			return digest(framesOf(await download(url)));
		};
		const plain = await video({});
		const fromUrl = await video({ image_url: reference });
		expect(fromUrl).not.toBe(plain);
		expect(await video({ images: [dataUri] })).toBe(fromUrl);
		expect(await video({ image_url: 'data:image/png;base64,AAAA' })).toBe(plain);
		expect(await video({ image_url: 'http://127.0.0.1:9/no.png' })).toBe(plain);
	});

	it('are on another origin than the API, need no key, and answer in parts', async () => {
		const url = picture();
		expect(new URL(url).origin).toBe(service.mediaUrl);
		expect(new URL(url).origin).not.toBe(new URL(service.url).origin);
		const part = await fetch(url, { headers: { range: 'bytes=1-3' } });
		expect(part.status).toBe(206);
		expect(part.headers.get('content-range')).toMatch(/^bytes 1-3\/\d+$/);
		expect(await part.text()).toBe('PNG');
		expect(service.requests).toMatchObject([{ host: 'media', status: 206 }]);
	});

	it('are there for successful tasks only', async () => {
		const { taskId } = service.createTask(IMAGE_MODEL, { prompt: 'x' });
		const statuses = async () =>
			Promise.all(
				[`${taskId}/1.png`, `${taskId}/2.png`, 'nobody/1.png'].map(
					async (path) => (await fetch(`${service.mediaUrl}/media/${path}`)).status,
				),
			);
		expect(await statuses()).toEqual([404, 404, 404]);
		service.complete(taskId);
		expect(await statuses()).toEqual([200, 404, 404]);
	});

	it('do not hold up the answers of the API while they are drawn', async () => {
		const video = download(finish(VIDEO_MODEL, { prompt: 'Waves', duration: 10 }));
		let isDrawn = false;
		void video.then(() => (isDrawn = true));
		for (let read = 0; read < 5; read++) await client.credits();
		expect(isDrawn).toBe(false);
		await video;
	});
});

describe('switches of the media', () => {
	it('mediaStatus: refuses the first downloads', async () => {
		const url = picture({ simulate: { mediaStatus: { status: 503, times: 1 } } });
		expect([(await fetch(url)).status, (await fetch(url)).status]).toEqual([503, 200]);
	});

	it('mediaDelayMs: holds the answer back', async () => {
		const url = picture({ simulate: { mediaDelayMs: 60 } });
		const start = Date.now();
		expect((await fetch(url)).status).toBe(200);
		expect(Date.now() - start).toBeGreaterThanOrEqual(58);
	});

	it('mediaRedirect: leads to the same media at another origin, or to an address', async () => {
		const url = picture({ simulate: { mediaRedirect: true } });
		const response = await fetch(url, { redirect: 'manual' });
		expect(response.status).toBe(302);
		expect(response.headers.get('location')).toBe(url.replace(service.mediaUrl, service.url));
		expect((await download(url)).subarray(1, 4).toString()).toBe('PNG');
		const elsewhere = picture({ simulate: { mediaRedirect: 'http://127.0.0.1:9/x' } });
		const answer = await fetch(elsewhere, { redirect: 'manual' });
		expect(answer.headers.get('location')).toBe('http://127.0.0.1:9/x');
	});

	it('mediaBytes: streams any number of bytes', async () => {
		const small = await download(picture({ simulate: { mediaBytes: 100_001 } }));
		expect(small.length).toBe(100_001);
		const gibibyte = await fetch(picture({ simulate: { mediaBytes: 2 ** 30 } }));
		expect(gibibyte.headers.get('content-length')).toBe(String(2 ** 30));
		const reader = gibibyte.body?.getReader();
		expect(
			Buffer.from((await reader?.read())?.value ?? [])
				.subarray(1, 4)
				.toString(),
		).toBe('PNG');
		await reader?.cancel();
	});

	it('mediaType, mediaHtml and mediaEmpty: answer with something else', async () => {
		const typed = await fetch(picture({ simulate: { mediaType: 'application/octet-stream' } }));
		expect(typed.headers.get('content-type')).toBe('application/octet-stream');
		const page = await fetch(picture({ simulate: { mediaHtml: true } }));
		expect([page.status, page.headers.get('content-type')]).toEqual([
			200,
			'text/html; charset=utf-8',
		]);
		expect(await page.text()).toContain('<!doctype html>');
		expect((await download(picture({ simulate: { mediaEmpty: true } }))).length).toBe(0);
	});

	it('mediaStalls: stands still in the middle', async () => {
		const response = await fetch(picture({ simulate: { mediaStalls: true } }));
		const reader = response.body?.getReader();
		let received = 0;
		const read = async () => {
			for (let part; !(part = await reader?.read())?.done;) received += part?.value?.length ?? 0;
			return 'ended';
		};
		const still = new Promise((resolve) => setTimeout(() => resolve('still'), 300));
		expect(await Promise.race([read(), still])).toBe('still');
		const length = Number(response.headers.get('content-length'));
		expect(received).toBe(Math.floor(length / 2));
		await reader?.cancel();
	});

	it('mediaTruncated: ends before its Content-Length', async () => {
		const response = await fetch(picture({ simulate: { mediaTruncated: true } }));
		expect(response.status).toBe(200);
		await expect(response.arrayBuffer()).rejects.toThrow();
	});
});
