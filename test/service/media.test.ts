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
const video = async (input: object) => await download(finish(VIDEO_MODEL, input), 'video/mp4');

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
	expect(new Set(texts).size).toBe(4);
});

it('videos are MP4 files as long as asked for, and hold up no answer while they are drawn', async () => {
	let isDrawn = false;
	const drawing = video({ prompt: 'Waves', duration: 10 }).finally(() => (isDrawn = true));
	for (let read = 0; read < 5; read++) await fetch(`${service.url}/api/credits`);
	expect(isDrawn).toBe(false);
	const file = await drawing;
	expect(file.subarray(4, 8).toString()).toBe('ftyp');
	expect(file.includes('avc1')).toBe(true);
	// The movie header holds the ticks in a second, then the ticks in all.
	const header = file.indexOf('mvhd') + 'mvhd'.length;
	expect(file.readUInt32BE(header + 16) / file.readUInt32BE(header + 12)).toBeCloseTo(10, 1);
});

it('videos show the reference image: a picture of this service or a data URI, in any field', async () => {
	const [url = ''] = finish(IMAGE_MODEL, { prompt: 'A lighthouse' });
	const dataUri = `data:image/png;base64,${(await download([url], 'image/png')).toString('base64')}`;
	/** Without the header, in which the time of the encoding stands. */
	const frames = async (input: object) => {
		const file = await video({ prompt: 'Waves', duration: 0.5, ...input });
		return file.subarray(0, file.indexOf('moov')).toString('base64');
	};
	const plain = await frames({});
	const fromUrl = await frames({ image_url: url });
	expect(fromUrl).not.toBe(plain);
	expect(await frames({ images: [dataUri] })).toBe(fromUrl);
	expect(await frames({ image_url: 'data:image/png;base64,AAAA' })).toBe(plain);
	expect(await frames({ image_url: 'http://127.0.0.1:9/no.png' })).toBe(plain);
});
