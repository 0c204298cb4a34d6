import { IMAGE_MODEL, VIDEO_MODEL } from '../workflow/support';
import { type SimulatedService, startService } from './service';

let service: SimulatedService;
beforeAll(async () => {
	service = await startService({ settings: { latencyMs: 60_000 } });
});
afterAll(async () => await service.close());

/** The addresses of the results of a task that has succeeded. */
function finish(model: string, input: object): string[] {
	const { taskId, record } = service.createTask(model, input);
	service.complete(taskId);
	return record.resultUrls ?? [];
}

async function download([url = '']: string[], type: string): Promise<Buffer> {
	const response = await fetch(url);
	expect([response.status, response.headers.get('content-type')]).toEqual([200, type]);
	return Buffer.from(await response.arrayBuffer());
}

const picture = async (input: object) => await download(finish(IMAGE_MODEL, input), 'image/png');

it('pictures are PNG files that the prompt and the number decide', async () => {
	const urls = finish(IMAGE_MODEL, { prompt: 'A lighthouse', simulate: { resultCount: 2 } });
	const files = [
		await picture({ prompt: 'A harbour' }),
		await picture({ prompt: 'A lighthouse' }),
		await picture({ prompt: 'A lighthouse' }),
		...(await Promise.all(urls.map(async (url) => await download([url], 'image/png')))),
	];
	for (const file of files) {
		expect(file.subarray(0, 8).toString('hex')).toBe('89504e470d0a1a0a');
		expect([file.readUInt32BE(16), file.readUInt32BE(20)]).toEqual([960, 720]);
	}
	const texts = files.map((file) => file.toString('base64'));
	expect(texts[2]).toBe(texts[1]);
	expect(new Set(texts).size).toBe(3);
});

it('videos are MP4 files', async () => {
	const file = await download(finish(VIDEO_MODEL, { prompt: 'Waves' }), 'video/mp4');
	expect(file.subarray(4, 8).toString()).toBe('ftyp');
	expect(file.includes('avc1')).toBe(true);
});
