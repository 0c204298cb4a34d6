import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import type { IDataObject } from 'n8n-workflow';

import { outputItems, until } from '../n8n/client';
import { needing } from './needs';
import { openScene, type Scene } from './scene';

const scene = openScene();

/** Downloads the result of one task for each object of switches, with failed items coming out. */
async function run(switches: IDataObject[], there: Scene = scene) {
	const execution = await there.runImages(switches, {
		// What stumbles is tried again for as long.
		options: { downloadResults: true, timeout: 45 },
		node: { onError: 'continueRegularOutput' },
	});
	return outputItems(execution, 'Media');
}

const mediaRequests = () => scene.service.requests.filter(({ host }) => host === 'media');

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
	let isDone = false;
	const watch = (async () => {
		while (!isDone) {
			most = Math.max(most, memoryMiB());
			await sleep(50);
		}
	})();
	const [item] = await run([{ mediaBytes: 1024 ** 3, mediaType: 'video/mp4' }]);
	isDone = true;
	await watch;
	console.log(`1 GiB: ${Math.round(most - before)} MiB more memory at most`);
	expect(item?.json.error).toBeUndefined();
	expect(item?.binary?.data).toMatchObject({ mimeType: 'video/mp4', fileSize: '1.07 GB' });
	// Most of it is what V8 has not collected yet, and more on a busy machine.
	expect(most - before).toBeLessThan(256);
});

test('a redirect to another host works, and carries no key', async () => {
	const [item] = await run([{ mediaRedirect: true }]);
	expect(item?.binary?.data).toMatchObject({ mimeType: 'image/png' });
	const media = scene.service.requests.filter(({ path }) => path.includes('/media/'));
	expect(media.length).toBeGreaterThanOrEqual(2);
	expect(media.every(({ authorization }) => authorization === undefined)).toBe(true);
});

test('a slow media host holds up no create, and is asked for ten files at once at most', async () => {
	const mediaDelayMs = 20_000;
	const switches = Array<IDataObject>(12).fill({ latencyMs: 200, mediaDelayMs });
	const options = { downloadResults: true, maxInFlight: 6 };
	const items = outputItems(await scene.runImages(switches, { options }), 'Media');
	expect(items.filter(({ binary }) => binary?.data)).toHaveLength(12);
	const creates = scene.creates.map(({ at }) => at);
	const media = mediaRequests().map(({ at }) => at);
	const firstFile = Math.min(...media) + mediaDelayMs;
	console.log(
		`The last of 12 creates left ${(firstFile - Math.max(...creates)) / 1000} s before the first file came`,
	);
	expect(creates).toHaveLength(12);
	expect(Math.max(...creates)).toBeLessThan(firstFile);
	expect(media.filter((at) => at < firstFile)).toHaveLength(10);
	expect(media).toHaveLength(12);
});

test('a host that is busy and then breaks off sends the file in the end, whole', async () => {
	const { service } = scene;
	service.configure({
		mediaStatus: { status: 503, times: 1, retryAfter: 3 },
		mediaTruncated: true,
	});
	const running = run([{}]);
	// The third request tells that the second answer has broken off.
	await until('the file to break off', 60_000, () => mediaRequests().length >= 3);
	service.configure({ mediaTruncated: false });
	const [item] = await running;
	console.log(`${mediaRequests().length} requests for one file`);
	expect(item?.json.error).toBeUndefined();
	const [url = ''] = item?.json.resultUrls as string[];
	const whole = (await (await fetch(url)).arrayBuffer()).byteLength;
	expect(item?.binary?.data?.bytes ?? whole).toBe(whole);
}, 120_000);

test('a bad result is an error of its item, which keeps the URL; the other items have their files', async () => {
	const bad: Array<[IDataObject, string]> = [
		[{ mediaHtml: true }, 'web page'],
		[{ mediaEmpty: true }, 'empty'],
		// It is shorter than its announced length.
		[{ mediaTruncated: true }, 'broke off'],
		[{ mediaStatus: 404 }, 'HTTP 404'],
		[{ mediaStalls: true }, 'broke off'],
	];
	const items = await run([...bad.map(([switches]) => switches), {}]);
	expect(items.slice(0, -1).map(({ json, binary }) => ({ ...json, binary }))).toMatchObject(
		bad.map(([, said]) => ({
			state: 'SUCCESS',
			resultUrls: [expect.stringContaining('http')],
			error: expect.stringContaining(said) as string,
			binary: undefined,
		})),
	);
	const good = items.at(-1);
	expect(good?.json.error).toBeUndefined();
	expect(good?.binary?.data).toMatchObject({ mimeType: 'image/png' });
});

describe('files in the database', () => {
	const { test } = needing('databaseLimit', 'Files in the database');
	const there = openScene({
		env: {
			N8N_DEFAULT_BINARY_DATA_MODE: 'database',
			N8N_BINARY_DATA_DATABASE_MAX_FILE_SIZE: '1',
		},
	});

	test("a result that is too large for n8n's database names n8n's setting", async () => {
		const switches = [{ mediaBytes: 3 * 1024 ** 2, mediaType: 'video/mp4' }, {}];
		const [large, small] = await run(switches, there);
		expect(large?.json.error).toMatch(/^n8n could not keep the result of 3 MiB: http/);
		expect(large?.json.state).toBe('SUCCESS');
		expect(small?.binary?.data).toMatchObject({ mimeType: 'image/png' });
	});
});
