import type { IDataObject, INodeExecutionData } from 'n8n-workflow';

import type { Settings } from '../service/settings';
import type { TestNode } from './engine';
import { field, hasErrorOutput, keepsGoing, MINUTE, stage } from './support';

const on = stage();

/** An image for each prompt, and its results. */
const download = async (
	items: Parameters<typeof on.images>[0] = ['a'],
	options: IDataObject = {},
	node: TestNode = {},
) => await on.images(items, { downloadResults: true, ...options }, node);

/** The first file of an item. */
const fileOf = ([item]: INodeExecutionData[]) => item?.binary?.data;

/** What the requests to media hosts carried as a key. */
const keys = (path = '') =>
	on.service.requests
		.filter((request) => (path === '' ? request.host === 'media' : request.path.includes(path)))
		.map(({ authorization }) => authorization);

// A stream of bytes is as good as a picture here, and quicker to make.
beforeEach(() => on.service.configure({ mediaBytes: 5000, mediaType: 'image/png' }));

describe('downloaded results', () => {
	it('are readable binary data with name and type, fetched without the key', async () => {
		const file = fileOf((await download()).output);
		expect(file).toMatchObject({
			fileName: `${on.taskIds[0]}.png`,
			mimeType: 'image/png',
			fileType: 'image',
		});
		expect(Buffer.from(file?.data ?? '', 'base64')).toHaveLength(5000);
		expect(keys()).toEqual([undefined]);
	});

	it('that are split stand in one item each, all paired with their input', async () => {
		on.service.configure({ resultCount: 2 });
		const { output } = await download(['a', 'b'], { splitResults: true });
		const expected = on.taskIds.flatMap((taskId, item) =>
			[0, 1].map((resultIndex) => ({
				json: {
					resultIndex,
					resultUrl: expect.stringMatching(new RegExp(`/${taskId}/${resultIndex + 1}\\.png$`)),
				},
				binary: { data: { fileName: `${taskId}_${resultIndex}.png` } },
				pairedItem: { item },
			})),
		);
		expect(output).toHaveLength(4);
		expect(output).toMatchObject(expected);
	});

	it('are fetched without the key from the origin of the API too', async () => {
		on.service.configure({ mediaRedirect: true });
		expect(fileOf((await download()).output)).toBeDefined();
		expect(keys('/media/')).toEqual([undefined, undefined]);
	});

	it('are not fetched unless that was asked for', async () => {
		await on.images(['a']);
		expect(keys()).toEqual([]);
	});

	it('of a task that was fetched with Get come along as well', async () => {
		const taskId = on.finishedTask();
		const options = { downloadResults: true };
		const { output } = await on.run({
			parameters: { resource: 'task', operation: 'get', taskId, options },
		});
		expect(fileOf(output)).toBeDefined();
	});
});

describe('a host that stumbles', () => {
	it.each<[string, Settings, IDataObject, number, number]>([
		[
			'at once where it says a time that is too late',
			{ mediaStatus: { status: 503, times: 1, retryAfter: 86_400 } },
			{},
			0,
			1,
		],
		['after ten minutes', { mediaStatus: 503 }, {}, 8, 12],
		['when the time of the wait is over', { mediaStatus: 503 }, { timeout: 60 }, 0, 1.1],
	])('is given up %s', async (_when, settings, options, from, to) => {
		on.service.configure(settings);
		const { error } = await download(['a'], options);
		expect(error?.message).toContain('could not be downloaded (HTTP 503)');
		expect(on.elapsed).toBeGreaterThan(from * MINUTE);
		expect(on.elapsed).toBeLessThan(to * MINUTE);
	});

	it('for all files holds up a batch for ten minutes, and not for ten minutes a file', async () => {
		on.service.configure({ mediaStatus: 503 });
		const batch = Array.from({ length: 15 }, (_, index) => `Prompt ${index}`);
		const { output } = await download(batch, {}, keepsGoing);
		expect(field(output, 'error')).toHaveLength(15);
		expect(on.elapsed).toBeLessThan(13 * MINUTE);
	});
});

describe('results that cannot be downloaded', () => {
	it.each<[string, Settings, RegExp]>([
		['a status', { mediaStatus: 404 }, /could not be downloaded \(HTTP 404\): http/],
		['a web page', { mediaHtml: true }, /a web page instead of media: http/],
		['nothing', { mediaEmpty: true }, /The result is empty: http/],
		[
			'half of it',
			{ mediaTruncated: true, mediaBytes: undefined },
			/The download broke off after \d+ bytes: http/,
		],
		[
			'a host that is down',
			{ extraFields: { resultUrls: ['http://127.0.0.1:1/1.png'] } },
			/The host of the result cannot be reached: http/,
		],
	])('for %s leave an item with the URL, task and record', async (_what, settings, message) => {
		on.service.configure(settings);
		const { output } = await download(['a'], {}, keepsGoing);
		const [taskId] = on.taskIds;
		expect(output).toMatchObject([
			{
				json: {
					taskId,
					state: 'SUCCESS',
					resultUrls: [expect.stringMatching(/^http/)],
					creditsConsumed: 8,
					record: { taskId },
					error: expect.stringMatching(message) as string,
				},
				pairedItem: { item: 0 },
			},
		]);
	});

	it('stop the node, or leave it by the error output', async () => {
		on.service.configure({ mediaStatus: 404 });
		expect((await download()).error?.message).toMatch(/could not be downloaded \(HTTP 404\): http/);
		on.service.clear();
		const { output, errors } = await download(['a'], {}, hasErrorOutput);
		expect(output).toEqual([]);
		const resultUrls = [expect.stringContaining('/media/') as string];
		expect(errors).toMatchObject([{ json: { details: { taskId: on.taskIds[0], resultUrls } } }]);
	});

	it('are an error of their own item alone', async () => {
		const broken = { prompt: 'b', simulate: { mediaStatus: 404 } };
		const { output } = await download(['a', broken, 'c'], {}, keepsGoing);
		const hasError = field(output, 'error').map((error) => error !== undefined);
		expect(hasError).toEqual([false, true, false]);
		expect(output.map(({ binary }) => binary !== undefined)).toEqual([true, false, true]);
	});
});
