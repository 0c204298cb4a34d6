import type { IDataObject, INodeExecutionData } from 'n8n-workflow';

import type { Settings } from '../service/settings';
import type { TestNode } from './engine';
import { isTerminal } from './n8n/database';
import { WorkflowN8n } from './n8n/workflowN8n';
import { field, keepsGoing, MINUTE, SECOND, stage, text } from './support';
import { pass, passUntil } from './time';

const on = stage();

/** An image for each prompt, and its results. n8n holds an evaluation to its end: other runs sleep while a host is down. */
const download = async (
	items: Parameters<typeof on.images>[0] = ['a'],
	options: IDataObject = {},
	node: TestNode = {},
) => await on.images(items, { downloadResults: true, ...options }, node, { mode: 'evaluation' });

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
			fileName: `1-a-${on.taskIds[0]?.slice(-4)}.png`,
			mimeType: 'image/png',
			fileType: 'image',
		});
		expect(Buffer.from(file?.data ?? '', 'base64')).toHaveLength(5000);
		expect(keys()).toStrictEqual([undefined]);
	});

	it('are fetched without the key from the origin of the API too', async () => {
		on.service.configure({ mediaRedirect: true });
		expect(fileOf((await download()).output)).toBeDefined();
		expect(keys('/media/')).toStrictEqual([undefined, undefined]);
	});

	it('below the base URL are fetched with the key', async () => {
		on.service.configure({ mediaBelowBase: true, mediaNeedsKey: true });
		expect(fileOf((await download()).output)).toBeDefined();
		expect(keys('/media/')).toEqual([`Bearer ${on.service.apiKey}`]);
	});

	it('below the base URL that redirect to another host are fetched from there without the key', async () => {
		on.service.configure({ mediaBelowBase: true, mediaNeedsKey: true, mediaRedirect: true });
		expect(fileOf((await download()).output)).toBeDefined();
		expect(keys('/media/')).toEqual([`Bearer ${on.service.apiKey}`, undefined]);
	});

	it('of a task that was fetched with Get come along as well', async () => {
		const get = { resource: 'task', operation: 'get', taskId: on.finishedTask() };
		const parameters = { ...get, downloadResults: true };
		expect(fileOf((await on.run({ parameters })).output)).toBeDefined();
	});
});

it('a link that ends before its file has come is read anew', async () => {
	on.service.configure({
		linkLifeMs: 5_000,
		mediaStatus: { status: 503, times: 1, retryAfter: 30 },
	});
	const { output } = await download();
	expect(fileOf(output)).toBeDefined();
	const statuses = on.service.requests.filter(({ host }) => host === 'media');
	expect(statuses.map(({ status }) => status)).toEqual([503, 200]);
	// The output has the link that worked.
	expect(field(output, 'resultUrls')).toEqual([[text(statuses[1]?.path ?? '')]]);
});

it('results whose places are empty keep the places of the others, and a warning says so', async () => {
	on.service.configure({ resultCount: 4, resultShape: ['$1', null, '$3', ''] });
	const { output, hints } = await download(['a'], { splitResults: true });
	expect(field(output, 'resultIndex')).toEqual([0, 2]);
	expect(output.map(({ binary }) => binary?.data?.fileName)).toEqual([
		text('-1.png'),
		text('-3.png'),
	]);
	expect(JSON.stringify(hints)).toContain('2 of 4 results missing');
});

describe('a host that stumbles', () => {
	const late = { status: 503, times: 1, retryAfter: 86_400 };

	it.each<[string, Settings['mediaStatus'], IDataObject, number, number]>([
		['at once where it says a time that is too late', late, {}, 0, 1],
		['after ten minutes', 503, {}, 8, 12],
		['when the time of the wait is over', 503, { timeout: 60 }, 0, 1.1],
	])('is given up %s', async (_when, mediaStatus, options, from, to) => {
		on.service.configure({ mediaStatus });
		const { error } = await download(['a'], options);
		expect(error?.message).toContain('could not be downloaded (HTTP 503)');
		expect(on.elapsed).toBeGreaterThan(from * MINUTE);
		expect(on.elapsed).toBeLessThan(to * MINUTE);
	});

	it('for all files holds up a batch for ten minutes, and not for ten minutes a file', async () => {
		on.service.configure({ mediaStatus: 503 });
		const batch = Array.from({ length: 5 }, (_, index) => `Prompt ${index}`);
		const { output } = await download(batch, {}, keepsGoing);
		expect(field(output, 'error')).toHaveLength(5);
		expect(on.elapsed).toBeLessThan(13 * MINUTE);
	});
});

it('one paid task whose file does not come is an error that names the task', async () => {
	on.service.configure({ mediaStatus: 404 });
	const { error, description } = await download(['a']);
	expect(error?.message).toContain(`(task ${on.taskIds[0]})`);
	expect(description).toContain('1 task succeeded and is paid for');
});

it('a result that cannot be downloaded leaves an item with the URL, task and record', async () => {
	on.service.configure({ mediaWay: 'cut short', mediaBytes: undefined });
	const { output } = await download(['a'], {}, keepsGoing);
	const [taskId] = on.taskIds;
	const known = { taskId, state: 'SUCCESS', creditsConsumed: 8, record: { createdAt: text('') } };
	const error = text('The download broke off after ');
	const json = { ...known, resultUrls: [text('http')], error };
	expect(output).toMatchObject([{ json, pairedItem: { item: 0 } }]);
});

it('a file that is there after 119 s comes, also where the run may sleep', async () => {
	on.service.configure({ mediaStatus: 404 });
	const wait = { resource: 'task', operation: 'wait', taskId: on.finishedTask() };
	const n8n = new WorkflowN8n(on.workflow({ parameters: { ...wait, downloadResults: true } }));
	const run = n8n.begin();
	await pass(119 * SECOND);
	on.service.resetSettings();
	await passUntil(() => isTerminal(run.row.status));
	expect(run.row.status).toBe('success');
	expect(fileOf(run.ran.output)).toBeDefined();
});
