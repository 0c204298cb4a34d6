import { BinaryDataService } from 'n8n-core';
import type { IBinaryData, IDataObject, INodeExecutionData } from 'n8n-workflow';
import { createHmac } from 'node:crypto';
import type { Settings } from '../service/settings';
import { API_KEY, SERVICE, type TestNode, type TestWorkflow } from './engine';
import { isTerminal } from './n8n/database';
import { WorkflowN8n } from './n8n/workflowN8n';
import { store } from './processedData';
import { field, IMAGE_MODEL, keepsGoing, MINUTE, SECOND, stage, text } from './support';
import { pass, passUntil } from './time';

const on = stage();

/** The option *Files*. */
const files = (...each: Array<[inputField: string, binaryPropertyName: string]>): IDataObject => ({
	files: {
		file: each.map(([inputField, binaryPropertyName]) => ({ inputField, binaryPropertyName })),
	},
});

/** A task of any model. */
const node = (options: IDataObject, more: IDataObject = {}): TestNode => ({
	parameters: {
		...{ resource: 'task', operation: 'create', model: 'other/video-model' },
		...{ input: '{ "prompt": "Waves" }', options },
		...more,
	},
});

const binary = (content: string | Buffer, mimeType = 'image/png', fileName = 'photo.png') => ({
	data: Buffer.from(content).toString('base64'),
	mimeType,
	fileName,
});
const uri = (content: string, mimeType = 'image/png') =>
	`data:${mimeType};base64,${Buffer.from(content).toString('base64')}`;

const FRAMES: INodeExecutionData = {
	json: {},
	binary: { first: binary('first'), last: binary('last'), sound: binary('beep', 'audio/wav') },
};

let reads: jest.SpyInstance;
beforeEach(() => {
	reads = jest.spyOn(BinaryDataService.prototype, 'getAsBuffer');
});
afterEach(() => jest.restoreAllMocks());

describe('files as data', () => {
	it('reach the service as data URIs, of any type and for any model, beside fields of any name', async () => {
		const fields = { toJSON: 'a', prototype: 'b', style: { constructor: 'c' } };
		const frames = files(['first_frame', 'first'], ['last_frame', 'last'], ['sound', 'sound']);
		const options = { ...frames, additionalInput: JSON.stringify(fields) };
		const { output } = await on.run(node(options), [FRAMES]);
		const sound = uri('beep', 'audio/wav');
		const sent = { first_frame: uri('first'), last_frame: uri('last'), sound };
		expect(on.inputs).toEqual([{ prompt: 'Waves', ...sent, ...fields }]);
		expect(field(output, 'input')).toEqual(on.inputs);
	});

	const JPEG = Buffer.concat([Buffer.from([0xff, 0xd8, 0xff, 0xe0]), Buffer.from('picture')]);
	const TEXT = Buffer.from('no picture at all');
	it.each<[string, Buffer, string, string]>([
		['image/jpg', TEXT, 'a', 'image/jpeg'],
		['image/png', JPEG, 'a.png', 'image/jpeg'],
		['application/octet-stream', TEXT, 'a.webp', 'image/webp'],
	])('that are called %j are sent as what they are', async (label, content, name, type) => {
		const item = { json: {}, binary: { a: binary(content, label, name) } };
		await on.run(node(files(['frame', 'a'])), [item]);
		const frame = `data:${type};base64,${content.toString('base64')}`;
		expect(on.inputs).toEqual([{ prompt: 'Waves', frame }]);
	});

	it('may be a reference picture, whose bytes say what it is: a HEIC without a label', async () => {
		const content = Buffer.concat([
			Buffer.from('\0\0\0\x1cftypheic\0\0\0\0mif1heic'),
			Buffer.alloc(9),
		]);
		const item = { json: {}, binary: { data: binary(content, '', 'a') } };
		const parameters = { resource: 'video', prompt: 'Waves', imageSource: 'binary' };
		await on.run({ parameters }, [item]);
		const image_url = `data:image/heic;base64,${content.toString('base64')}`;
		expect(on.inputs).toEqual([{ prompt: 'Waves', image_url }]);
	});

	it('are cut in the output where they are long, as is a data URI that was typed in', async () => {
		const large = Buffer.alloc(100_000, 7);
		const typed = uri('y'.repeat(9000), 'text/plain');
		const item = { json: {}, binary: { a: binary(large), b: binary('small') } };
		const { output } = await on.run(
			node({ ...files(['images', 'a,b']), additionalInput: JSON.stringify({ deep: [{ typed }] }) }),
			[item],
		);
		const whole = `data:image/png;base64,${large.toString('base64')}`;
		expect(on.inputs).toMatchObject([{ images: [whole, uri('small')], deep: [{ typed }] }]);
		const cut = (whole: string) => `${whole.slice(0, 64)}… (${whole.length} characters)`;
		expect(field(output, 'input')).toEqual([
			{ prompt: 'Waves', images: [cut(whole), uri('small')], deep: [{ typed: cut(typed) }] },
		]);
	});

	it('are not sent as what an output shows of them', async () => {
		const large = { json: {}, binary: { a: binary(Buffer.alloc(100_000)), b: binary('small') } };
		const shown = await on.run(node({ ...files(['frames', 'a,b']) }), [large]);
		const dry = await on.run(node({ ...files(['frames', 'b']), dryRun: true }), [large]);
		const twice = { json: {}, binary: { a: binary('small', 'image/png', 'photo (1).png') } };
		const named = await on.run(node({ ...files(['frames', 'a']), dryRun: true }), [twice]);
		const input = `{ "frames": " DATA:image/png;base64,${'A'.repeat(5000)}" }`;
		const typed = await on.run(node({ dryRun: true }, { input }));
		on.service.clear();
		for (const { output } of [shown, dry, named, typed]) {
			const { error } = await on.run(node({}, { input: '={{ $json.input }}' }), output);
			expect(error?.message).toBe('The input has a file that is cut short, as outputs show files');
		}
		expect(on.creates).toEqual([]);
	});

	it('are nowhere kept with what sleeps, though the service repeats them in its answers', async () => {
		on.service.configure({ createShape: '$record', latencyMs: 600_000 });
		const items = [{ json: {}, binary: { data: binary('a'.repeat(9000)) } }];
		const parameters = { ...files(['frame', 'data']), suspendAfter: 0.1 };
		const { run } = await on.run(node(parameters), items);
		expect(run.status).toBe('waiting');
		const text = JSON.stringify(run.data.executionData?.contextData);
		expect(text).toContain('data:image/png;base64,YWFh');
		expect(text.length).toBeLessThan(4000);
	});
});

describe('a dry run', () => {
	const dry = (options: IDataObject = {}, more: IDataObject = {}) =>
		node(
			{ ...files(['frame', 'first']), dryRun: true, ...options },
			{ model: IMAGE_MODEL, ...more },
		);

	it('shows what each item would send and cost, sends nothing, reads no file and notes nothing', async () => {
		const ran = await on.run(dry(), [FRAMES, FRAMES]);
		const frame = 'data:image/png;base64,… (photo.png, 5 bytes)';
		const sent = { model: IMAGE_MODEL, input: { prompt: 'Waves', frame } };
		// n8n shows these fields to whoever builds the next node.
		const ofTask = { taskId: null, state: null, resultUrls: [], creditsConsumed: null };
		const json = { ...ofTask, ...sent, estimatedCostUsd: 0.08, dryRun: true };
		const binary = FRAMES.binary;
		expect(ran.output).toEqual([0, 1].map((item) => ({ json, binary, pairedItem: { item } })));
		expect(on.service.requests).toEqual([]);
		expect(reads).not.toHaveBeenCalled();
		expect(ran.hints).toEqual([
			"Nothing was sent. 2 tasks would cost 0.16 USD. A real run fills in 'taskId', 'state' and 'resultUrls': the first result is resultUrls[0].",
		]);
		// Nothing is in the journal.
		expect(JSON.stringify(ran.run.data.executionData?.contextData ?? {})).not.toContain('digest');
	});

	it('refuses what a real run would refuse, and says that the budget would', async () => {
		const tooDear = await on.run(dry({ maxCostUsd: 0.1 }), [FRAMES, FRAMES]);
		expect(field(tooDear.output, 'dryRun')).toEqual([true, true]);
		expect(tooDear.hints[0]).toContain('This batch would be refused: 2 tasks would cost 0.16 USD');
		const noFile = await on.run(dry(), [FRAMES, { json: {} }]);
		expect(noFile.error?.message).toContain('first');
		const noTrigger = await on.run(dry({}, { completion: 'trigger' }), [FRAMES]);
		expect(noTrigger.error?.message).toContain('No published Media Generation Trigger');
		expect(on.service.requests).toEqual([]);
	});
});

const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');

/** A token as n8n makes it. */
const tokenOf = ({ id }: IBinaryData, expiresIn = 'never') => {
	if (id === 'filesystem-v2:unsigned') throw new Error('no secret');
	const body = `${part({ alg: 'HS256', typ: 'JWT' })}.${part({ id, expiresIn })}`;
	return `${body}.${createHmac('sha256', 'secret').update(body).digest('base64url')}`;
};

/** A file that n8n keeps outside of memory. */
const stored = (name: string): IBinaryData => ({
	id: `filesystem-v2:${name}`,
	data: 'filesystem-v2',
	mimeType: 'image/png',
	fileName: `${name}.png`,
	bytes: 17,
});
const item: INodeExecutionData = {
	json: {},
	binary: { first: stored('first'), last: stored('last') },
};
const link = (name: string, expiresIn: string) =>
	`https://n8n.test/rest/binary-data/signed?token=${tokenOf(stored(name), expiresIn)}`;

const links = (options: IDataObject = {}, more?: IDataObject) =>
	node({ ...files(['first_frame', 'first']), sendFilesAs: 'link', ...options }, more);

let sign: jest.SpyInstance;
beforeEach(() => {
	sign = jest.spyOn(BinaryDataService.prototype, 'createSignedToken').mockImplementation(tokenOf);
});

describe('files as links', () => {
	it('reach the service as addresses that n8n signs, and none is read', async () => {
		const { error } = await on.run(links(), [item]);
		expect(error).toBeUndefined();
		expect(on.inputs).toEqual([{ prompt: 'Waves', first_frame: link('first', '86400s') }]);
		expect(reads).not.toHaveBeenCalled();
	});

	it.each([
		['with the whole second', {}, { timeout: 1.5 }, '2s', undefined],
		['after ten minutes with a wait that is held', {}, {}, '600s', 'evaluation'],
		['after a day where nobody waits', { completion: 'return' }, {}, '86400s', undefined],
	] as Array<[string, IDataObject, IDataObject, string, 'evaluation' | undefined]>)(
		'end %s',
		async (_when, more, options, expiresIn, mode) => {
			await on.run(links(options, more), [item], { ...(mode && { mode }) });
			expect(on.inputs).toEqual([{ prompt: 'Waves', first_frame: link('first', expiresIn) }]);
		},
	);

	it('are signed anew for a create that is sent again', async () => {
		on.service.configure({ createStatus: { status: 429, times: 2, retryAfter: 1 } });
		await on.run(links(), [item]);
		// Each time it is sent, and once before, to see whether n8n can.
		expect(sign).toHaveBeenCalledTimes(4);
		expect(on.taskIds).toHaveLength(1);
	});

	it('leave their tokens nowhere, also where the record repeats them', async () => {
		on.service.configure({ createShape: '$record' });
		const ran = await on.run(links({ suspendAfter: 0 }), [item]);
		// Another n8n: it gives the same id to its first execution.
		store.reset();
		on.service.configure({ createStatus: { status: 400, times: 1, body: link('first', '7s') } });
		const refused = await on.run(links(), [item]);
		on.service.configure({ outcome: 'FAILURE', failureMessage: link('first', '86400s') });
		const unlucky = await on.run(links(), [item]);
		const [token = ''] = tokenOf(stored('first')).split('.', 1);
		expect(token).toMatch(/^eyJ/);
		for (const { run, error } of [ran, refused, unlucky]) {
			const text = JSON.stringify([run.data, error?.message, error]);
			expect(text).toContain('first.png');
			expect(text).not.toContain(token);
		}
		expect(JSON.stringify(on.inputs)).toContain(token);
	});
});

const of = (first: IBinaryData) => ({ items: [{ json: {}, binary: { first } }] });
const unreached = {
	credential: { baseUrl: SERVICE, apiKey: API_KEY },
	host: { restApiUrl: 'http://localhost:5678/rest' },
};

it.each<[string, Partial<TestWorkflow>, says: string[], IDataObject?]>([
	[
		'n8n keeps files in memory',
		of({ ...stored('first'), id: undefined, data: 'AAAA' }),
		[
			"'Send Files As' is 'Links', but n8n keeps the file 'first' in memory",
			'N8N_DEFAULT_BINARY_DATA_MODE',
			"or choose 'Data' in 'Send Files As'. No task was created.",
		],
	],
	[
		'the service cannot reach n8n, as far as it shows',
		unreached,
		["the service cannot reach n8n at 'http://localhost:5678'", 'N8N_WEBHOOK_URL'],
	],
	['n8n cannot make them', of(stored('unsigned')), ["no link of the file 'first': no secret"]],
	['the value is none of the list', {}, ["'Send Files As' is 'url'"], { sendFilesAs: 'url' }],
])(
	'links are refused before a task is created where %s',
	async (_where, more, says, ...[options]) => {
		const ran = await on.run(links(options), [item], more);
		expect(on.requests('POST')).toEqual([]);
		const said = `${ran.error?.message} ${ran.description}`;
		for (const part of ["'Data'", ...says]) expect(said).toContain(part);
		expect(said).not.toContain('eyJ');
	},
);

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
