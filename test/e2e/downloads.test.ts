import { readFileSync } from 'node:fs';
import type { IDataObject } from 'n8n-workflow';

import { outputItems } from '../n8n/client';
import { openScene } from './scene';

const scene = openScene();

/** Downloads the result of one task for each object of switches, with failed items coming out. */
async function run(switches: IDataObject[]) {
	const execution = await scene.runImages(switches, {
		// What stumbles is tried again for as long.
		options: { downloadResults: true, timeout: 45 },
		node: { onError: 'continueRegularOutput' },
	});
	return outputItems(execution, 'Media');
}

/** Resident memory of the process that runs executions, in MiB. */
function memoryMiB(): number {
	const status = readFileSync(`/proc/${scene.stage.runner.pid}/status`, 'utf8');
	return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1]) / 1024;
}

test('a result of 1 GiB goes into the file system, with less than a quarter of it as more memory in n8n', async () => {
	// Once before, so that what n8n loads for its first download is not counted.
	await run([{}]);
	const before = memoryMiB();
	let most = before;
	const watch = setInterval(() => (most = Math.max(most, memoryMiB())), 50);
	const [item] = await run([{ mediaBytes: 1024 ** 3, mediaType: 'video/mp4' }]);
	clearInterval(watch);
	console.log(`1 GiB: ${Math.round(most - before)} MiB more memory at most`);
	expect(item?.json.error).toBeUndefined();
	expect(item?.binary?.data).toMatchObject({ mimeType: 'video/mp4', fileSize: '1.07 GB' });
	// Most of it is what V8 has not collected yet, and more on a busy machine.
	expect(most - before).toBeLessThan(256);
});

test('a slow media host holds up no create, and is asked for ten files at once at most', async () => {
	const mediaDelayMs = 20_000;
	const switches = Array<IDataObject>(12).fill({ latencyMs: 200, mediaDelayMs });
	const options = { downloadResults: true, maxInFlight: 6 };
	const items = outputItems(await scene.runImages(switches, { options }), 'Media');
	expect(items.filter(({ binary }) => binary?.data)).toHaveLength(12);
	const creates = scene.creates.map(({ at }) => at);
	const media = scene.requests('media', 'GET').map(({ at }) => at);
	const firstFile = Math.min(...media) + mediaDelayMs;
	expect(creates).toHaveLength(12);
	expect(Math.max(...creates)).toBeLessThan(firstFile);
	expect(media.filter((at) => at < firstFile)).toHaveLength(10);
	expect(media).toHaveLength(12);
});

test('a bad result is an error of its item, which keeps the URL; the other items have their files, fetched without the key', async () => {
	const bad: Array<[IDataObject, string]> = [
		[{ mediaStatus: { status: 200, body: '<p>Not ready</p>' } }, 'web page'],
		[{ mediaStatus: { status: 200, body: '', contentType: 'image/png' } }, 'empty'],
		// It is shorter than its announced length.
		[{ mediaWay: 'cut short' }, 'broke off'],
		[{ mediaStatus: 404 }, 'HTTP 404'],
		[{ mediaWay: 'stalls' }, 'broke off'],
	];
	const busy = { mediaStatus: { status: 503, times: 1, retryAfter: 3 } };
	const good = [{}, busy, { mediaRedirect: true }];
	const items = await run([...bad.map(([switches]) => switches), ...good]);
	expect(items.slice(0, -3).map(({ json, binary }) => ({ ...json, binary }))).toMatchObject(
		bad.map(([, said]) => ({
			state: 'SUCCESS',
			resultUrls: [expect.stringContaining('http')],
			error: expect.stringContaining(said) as string,
			binary: undefined,
		})),
	);
	for (const { json, binary } of items.slice(-3)) {
		expect(json.error).toBeUndefined();
		expect(binary?.data).toMatchObject({ mimeType: 'image/png' });
	}
	const media = scene.service.requests.filter(({ path }) => path.includes('/media/'));
	expect(media.every(({ authorization }) => authorization === undefined)).toBe(true);
});
