import type { IDataObject } from 'n8n-workflow';

import { field, imageNode, prompts, stage } from './support';

jest.setTimeout(60_000);

const on = stage();

const downloading = (options: IDataObject = {}, more = {}) =>
	imageNode({ downloadResults: true, ...options }, more);
const keepsGoing = { onError: 'continueRegularOutput' as const };

const mediaRequests = () => on.service.requests.filter(({ host }) => host === 'media');

// A stream of bytes is as good as a picture here, and quicker to make.
beforeEach(() => on.service.configure({ mediaBytes: 5000, mediaType: 'image/png' }));

describe('downloaded results', () => {
	it('are readable binary data with name and type', async () => {
		const { output } = await on.run(downloading(), prompts('a'));
		const file = output[0]?.binary?.data;
		expect(file).toMatchObject({
			fileName: `${on.taskIds[0]}.png`,
			mimeType: 'image/png',
			fileType: 'image',
		});
		expect(Buffer.from(file?.data ?? '', 'base64')).toHaveLength(5000);
	});

	it('stand in data, data_1, data_2 beside all fields of the item', async () => {
		on.service.configure({ resultCount: 3 });
		const { output } = await on.run(downloading(), prompts('a'));
		expect(Object.keys(output[0]?.binary ?? {})).toEqual(['data', 'data_1', 'data_2']);
		expect(output[0]?.json.resultUrls).toHaveLength(3);
	});

	it('stand in the field that was chosen', async () => {
		const { output } = await on.run(downloading({ outputBinaryField: 'picture' }), prompts('a'));
		expect(Object.keys(output[0]?.binary ?? {})).toEqual(['picture']);
	});

	it('that are split stand in one item each', async () => {
		on.service.configure({ resultCount: 2 });
		const { output } = await on.run(downloading({ splitResults: true }), prompts('a'));
		expect(output.map(({ binary }) => binary?.data?.fileName)).toEqual(
			[0, 1].map((index) => `${on.taskIds[0]}_${index}.png`),
		);
	});

	it('are fetched without the key', async () => {
		await on.run(downloading(), prompts('a'));
		expect(mediaRequests().map(({ authorization }) => authorization)).toEqual([undefined]);
	});

	it('are fetched without the key from the origin of the API too', async () => {
		on.service.configure({ mediaRedirect: true });
		const { output } = await on.run(downloading(), prompts('a'));
		expect(output[0]?.binary).toHaveProperty('data');
		const media = on.service.requests.filter(({ path }) => path.includes('/media/'));
		expect(media.map(({ authorization }) => authorization)).toEqual([undefined, undefined]);
	});

	it('are not fetched unless that was asked for', async () => {
		await on.run(imageNode(), prompts('a'));
		expect(mediaRequests()).toEqual([]);
	});

	it('of a task that was fetched with Get come along as well', async () => {
		const { taskId } = on.service.createTask('any/model', { prompt: 'a' });
		on.service.complete(taskId);
		const { output } = await on.run({
			parameters: {
				resource: 'task',
				operation: 'get',
				taskId,
				options: { downloadResults: true },
			},
		});
		expect(output[0]?.binary).toHaveProperty('data');
	});
});

describe('a host that stumbles', () => {
	const minutes = (since: number) => (Date.now() - since) / 60_000;

	it.each([408, 425, 429, 500, 502, 503, 504])(
		'with HTTP %d once is asked again, without the key',
		async (status) => {
			on.service.configure({ mediaStatus: { status, times: 1 } });
			const { output } = await on.run(downloading(), prompts('a'));
			expect(Buffer.from(output[0]?.binary?.data?.data ?? '', 'base64')).toHaveLength(5000);
			expect(mediaRequests().map(({ authorization }) => authorization)).toEqual([
				undefined,
				undefined,
			]);
		},
	);

	it('is asked no sooner than it says', async () => {
		on.service.configure({ mediaStatus: { status: 503, times: 1, retryAfter: 240 } });
		const startedAt = Date.now();
		const { output } = await on.run(downloading(), prompts('a'));
		expect(output[0]?.binary).toHaveProperty('data');
		expect(minutes(startedAt)).toBeGreaterThanOrEqual(4);
	});

	it('is not waited for where it says a time that is too late', async () => {
		on.service.configure({ mediaStatus: { status: 503, times: 1, retryAfter: 86_400 } });
		const startedAt = Date.now();
		const { error } = await on.run(downloading(), prompts('a'));
		expect(error?.message).toContain('could not be downloaded (HTTP 503)');
		expect(minutes(startedAt)).toBeLessThan(1);
	});

	it('in the midst of a file is asked for the whole of it again', async () => {
		on.service.configure({ mediaBytes: undefined, mediaType: undefined, mediaTruncated: true });
		// The task is read after two seconds, and the file asked for once more two seconds after that.
		setTimeout(() => on.service.configure({ mediaTruncated: false }), 3_000);
		const { output } = await on.run(downloading(), prompts('a'));
		expect(mediaRequests()).toHaveLength(2);
		expect(output[0]?.binary?.data).toMatchObject({ mimeType: 'image/png' });
	});

	it('is given up after ten minutes', async () => {
		on.service.configure({ mediaStatus: 503 });
		const startedAt = Date.now();
		const { error } = await on.run(downloading(), prompts('a'));
		expect(error?.message).toContain('could not be downloaded (HTTP 503)');
		expect(minutes(startedAt)).toBeGreaterThan(8);
		expect(minutes(startedAt)).toBeLessThan(12);
	});

	it('for all files holds up a batch for ten minutes, and not for ten minutes a file', async () => {
		on.service.configure({ mediaStatus: 503 });
		const startedAt = Date.now();
		const batch = Array.from({ length: 15 }, (_, index) => `Prompt ${index}`);
		const { output } = await on.run(downloading({}, keepsGoing), prompts(...batch));
		expect(field(output, 'error')).toHaveLength(15);
		expect(minutes(startedAt)).toBeLessThan(13);
	});

	it('is given up when the time of the wait is over', async () => {
		on.service.configure({ mediaStatus: 503 });
		const startedAt = Date.now();
		const { error } = await on.run(downloading({ timeout: 60 }), prompts('a'));
		expect(error?.message).toContain('could not be downloaded (HTTP 503)');
		expect(minutes(startedAt)).toBeLessThan(1.1);
	});
});

describe('results that cannot be downloaded', () => {
	it.each([
		['a status', { mediaStatus: 404 }, /could not be downloaded \(HTTP 404\): http/],
		['a web page', { mediaHtml: true }, /a web page instead of media: http/],
		['nothing', { mediaEmpty: true }, /The result is empty: http/],
		[
			'half of it',
			{ mediaTruncated: true, mediaBytes: undefined },
			/The download broke off after \d+ bytes: http/,
		],
	])('for %s are an error that names the URL', async (_what, settings, message) => {
		on.service.configure(settings);
		const { error } = await on.run(downloading(), prompts('a'));
		expect(error?.message).toMatch(message);
	});

	it('leave an item that carries task, URLs and record', async () => {
		on.service.configure({ mediaStatus: 404 });
		const { output } = await on.run(downloading({}, keepsGoing), prompts('a'));
		const [taskId] = on.taskIds;
		expect(output).toMatchObject([
			{
				json: {
					taskId,
					state: 'SUCCESS',
					resultUrls: [expect.stringContaining('/media/')],
					creditsConsumed: 8,
					record: { taskId },
					error: expect.stringContaining('HTTP 404') as string,
				},
				pairedItem: { item: 0 },
			},
		]);
	});

	it('leave it on the error output too', async () => {
		on.service.configure({ mediaStatus: 404 });
		const { output, errors } = await on.run(
			downloading({}, { onError: 'continueErrorOutput' }),
			prompts('a'),
		);
		expect(output).toEqual([]);
		expect(errors).toMatchObject([
			{
				json: {
					details: { taskId: on.taskIds[0], resultUrls: [expect.stringContaining('/media/')] },
				},
			},
		]);
	});

	it('are an error of their own item alone', async () => {
		const broken = { prompt: 'b', simulate: { mediaStatus: 404 } };
		const { output } = await on.run(downloading({}, keepsGoing), prompts('a', broken, 'c'));
		expect(field(output, 'error').map((error) => error !== undefined)).toEqual([
			false,
			true,
			false,
		]);
		expect(output.map(({ binary }) => binary !== undefined)).toEqual([true, false, true]);
	});

	it('where the host is down leave an item that carries the URLs', async () => {
		on.service.configure({ extraFields: { resultUrls: ['http://127.0.0.1:1/1.png'] } });
		const { output } = await on.run(downloading({}, keepsGoing), prompts('a'));
		expect(output[0]?.json).toMatchObject({
			resultUrls: ['http://127.0.0.1:1/1.png'],
			error: expect.stringContaining('The host of the result cannot be reached') as string,
		});
	});
});
