import type { IDataObject, INodeExecutionData } from 'n8n-workflow';

import { callbackToken } from '../../../nodes/MediaGeneration/shared/addresses';
import { InputFile } from '../../../nodes/MediaGeneration/plan/inputFile';
import type { ItemPlan } from '../../../nodes/MediaGeneration/plan/planTypes';
import { Stopped } from '../../../nodes/MediaGeneration/shared/clock';
import { API_KEY, TRIGGER, TRIGGER_PATH } from '../../workflow/engine';
import { BusyClock, caught } from '../support';
import { createOf, image, inputOf, itemOf, json, planOf, refusalOf } from './planning';

const video = (more: IDataObject = {}, options: IDataObject = {}) => ({
	resource: 'video',
	prompt: 'Waves',
	imageSource: 'none',
	...more,
	options,
});
const task = (operation: string, more: IDataObject) => ({ resource: 'task', operation, ...more });
const PICTURE = 'https://m.example.com/1.png';
const fromUrl = { imageSource: 'url', imageUrl: PICTURE };
const picture = (mimeType: string): INodeExecutionData => ({
	json: {},
	binary: { data: { data: 'iVBORw==', mimeType } },
});

it('an image is planned with the defaults of the contract', async () => {
	const { items, maxInFlight } = await planOf({ prompt: 'A lighthouse' });
	expect(maxInFlight).toBe(10);
	expect(items[0]).toEqual({
		itemIndex: 0,
		taskIndex: 0,
		kind: 'create',
		completion: 'wait',
		retryFailed: 0,
		sendsLinks: false,
		isDry: false,
		model: 'imagevendor/image-model-2-text-to-image',
		input: { prompt: 'A lighthouse' },
		timeoutMs: 86_400_000,
		patienceMs: 86_400_000,
		output: { download: true, binaryField: 'data', split: false },
		maxCostUsd: 0,
		estimatedCostUsd: 0.08,
	});
});

it.each<[IDataObject, boolean]>([
	[image(), true],
	[image({}, { downloadResults: false }), false],
	[image({}, { downloadResults: '={{ false }}' }), false],
	[image({}, { completion: 'return' }), false],
	[video(), true],
	[task('create', { model: 'a/b', input: '{"prompt":"A"}' }), true],
	[task('create', { model: 'a/b', input: '{"prompt":"A"}', downloadResults: false }), false],
	[task('get', { taskId: 'a' }), false],
	[task('wait', { taskId: 'a' }), true],
	[task('wait', { taskId: 'a', downloadResults: false }), false],
])('the results of %j are downloaded: %j', async (parameters, download) => {
	expect((await itemOf(parameters)).output.download).toBe(download);
});

describe('the input', () => {
	const five = { ...fromUrl, durationSeconds: 5 };
	const [waves, lighthouse] = [{ prompt: 'Waves' }, { prompt: 'A lighthouse' }];

	it.each<[string, IDataObject, IDataObject]>([
		['has the prompt to the letter', { prompt: ' a\n b ' }, { prompt: ' a\n b ' }],
		['has the address of the image', video(five), { ...waves, duration: 5, image_url: PICTURE }],
		['leaves a duration of 0 out', video({ durationSeconds: 0 }), waves],
		['is the same with additional input of blanks', image({ additionalInput: '  ' }), lighthouse],
	])('%s', async (_what, parameters, input) => {
		expect(await inputOf(parameters)).toEqual(input);
	});

	it('has a picture as a reference until it is sent, however its type is written', async () => {
		const input = await inputOf(video({ imageSource: 'binary' }), [picture('IMAGE/PNG')]);
		expect(input).toEqual({ prompt: 'Waves', image_url: expect.any(InputFile) });
		expect(JSON.stringify(input)).not.toContain('iVBORw');
	});
});

describe('a task to read', () => {
	const read = async (taskId: string, item: IDataObject = {}) =>
		await planOf(task('get', { taskId }), json(item, { taskId: 'last' }));

	const abc = ['a', 'b', 'c'];
	const failed = '{ "error": "late", "details": { "taskId": "a" } }';
	const passedOver = '{ "error": "passed over", "taskIds": ["b", "c"] }';

	it.each<[string, string, IDataObject?]>([
		['line breaks', 'a\r\nb\n\n c '],
		['a list and commas', '={{ $json.ids }}', { ids: ['a,b', 'c'] }],
		['a list as a cell or an agent writes it', '={{ $json.ids }}', { ids: JSON.stringify(abc) }],
		['items', '={{ $json.items }}', { items: abc.map((taskId) => ({ taskId, id: 1 })) }],
		['items copied as JSON', '[{ "taskId": "a" },\n{ "taskId": "b" }, { "taskId": "c" }]'],
		['items of the error output, and of a run that was passed over', `[${failed}, ${passedOver}]`],
		[
			'items as n8n has them',
			'={{ ["a", "b", "c"].map((taskId) => ({ json: { taskId }, pairedItem: 0 })) }}',
		],
	])('may be many, by %s, each with the item it came from', async (_what, taskId, item = {}) => {
		const { items } = await read(taskId, item);
		const expected = abc.map((id) => ({ kind: 'read', taskId: id, itemIndex: 0 }));
		expect(items.slice(0, 4)).toMatchObject([...expected, { itemIndex: 1 }]);
	});

	it.each(['={{ $json }}', '{ "taskId": "last", "state": "PENDING" }'])(
		'may be an item that names its task: %s',
		async (taskId) => {
			const { items } = await read(taskId, { taskId: 'last' });
			expect(items[0]).toMatchObject({ kind: 'read', taskId: 'last' });
		},
	);

	it('is not taken from an item without one, whose id is another', async () => {
		const { items } = await read('={{ $json }}', { id: 'row-7' });
		const message = "The parameter 'Task ID' cannot be a task id: an object";
		expect(items[0]).toMatchObject({ error: { message } });
	});

	it('may have a number as its id', async () => {
		const plan = await itemOf(task('get', { taskId: '={{ $json.id }}' }), json({ id: 42 }));
		expect(plan).toMatchObject({ kind: 'read', taskId: '42', wait: false });
	});
});

describe('what cannot be meant', () => {
	type Case = [message: string, parameters: IDataObject, wayOut: RegExp];
	const options = (label: string, name: string, values: unknown[], wayOut: RegExp) =>
		values.map((value): Case => {
			const given = { [name]: value } as IDataObject;
			return [
				`'${label}' is '${value}'`,
				name === 'completion' ? image({}, given) : image(given),
				wayOut,
			];
		});
	const generic = (input: string) => task('create', { model: 'a/b', input });
	const url = (imageUrl: string) => video({ imageSource: 'url', imageUrl });
	const added = (additionalInput: string) => image({ additionalInput });
	const file = { imageSource: 'binary', binaryPropertyName: '' };
	const address = 'm.example.com/1.png';
	const extra = "'More Input (JSON)'";
	const toNowhere = image({}, { completion: 'trigger', callbackUrl: 'here' });

	it.each<Case>([
		["'Prompt' is empty", image({}, { prompt: '  ' }), /Describe/],
		["'Model' is empty", { ...generic('{ "seed": 7 }'), model: ' ' }, /from the list/],
		...options('Timeout', 'timeout', [-5, 'long'], /0 or more.*seconds/),
		...options('Timeout', 'timeout', [1e21], /from 0 to 9007199254740991/),
		...options('Sleep After', 'suspendAfter', [-1, 'soon'], /0 or more/),
		...options('Max Cost (USD)', 'maxCostUsd', [-1, 'cheap'], /0 or more/),
		...options('Max Tasks at the Same Time', 'maxInFlight', [0, -1, 1.5, 'many'], /of 1 or more/),
		...options('Retry Failed Tasks', 'retryFailed', [6, -1, 1.5, 'often'], /from 0 to 5/),
		...options('Dry Run', 'dryRun', [1, 'TRUE '], /true or false/),
		...options('If Some Items Fail', 'ifSomeFail', ['Stop'], /'Keep All Items' or 'Stop with/),
		["'Duration' is '-1'", video({ durationSeconds: -1 }), /0 or more/],
		[`${extra} is not valid JSON`, added('{ a: 7 }'), /"seed": 7.*'Additional Fields'.*parser/],
		[`${extra} is a list`, added('[1]'), /object/],
		[`${extra} is '7'`, added('7'), /object/],
		[`${extra} is not valid JSON`, added('={{ ({ seed: NaN }) }}'), /'seed' is 'NaN'/],
		[`${extra} is '1970-01-01T`, added('={{ new Date(0) }}'), /object/],
		["'Input' is '20", generic('={{ $now }}'), /object/],
		["'Image URL' is empty", video({ imageSource: 'url' }), /Reference Image/],
		["'Reference Image' is 'None'", video({ imageSource: '={{ "None" }}' }), /none, url or binary/],
		[`'Image URL' is not a valid address: '${address}'`, url(address), /https:/],
		["'Image URL' starts with 'file:'", url('file:///etc/passwd'), /https:/],
		["'Image URL' starts with 'data:'", url('=data:image/png;base64,{{ $json.none }}'), /https:/],
		["'Input Data Field Name' is empty", video(file), /has no files/],
		["'Input' is empty", generic('{"prompt":""}'), /"prompt".*'Additional Fields'/],
		["'Input' is a list", generic('[]'), /object/],
		["'Task ID' is empty", task('get', { taskId: '' }), /taskId/],
		["'Task ID' cannot be a task id: '..'", task('wait', { taskId: '..' }), /taskId/],
		["'Callback URL' is not a valid address: 'here'", toNowhere, /production URL/],
		// Completions that this version does not know.
		...options('When Do the Items Go On', 'completion', ['later', 'poll', 'suspend'], /Choose/),
		...options('When Do the Items Go On', 'completion', [null, false, 0], /Choose/),
	])('is refused with the parameter, the value and the way out: %s', async (...given) => {
		const [message, parameters, wayOut] = given;
		const error = await refusalOf(parameters);
		expect(error.message).toContain(`The parameter ${message}`);
		expect(error.description).toMatch(wayOut);
	});

	it.each<[string, prompt: string, IDataObject, string]>([
		['Infinity', '={{ $json.a }}', { a: Infinity }, "is not a text but 'Infinity'"],
		['an object', '={{ $json }}', { a: 1 }, 'is not a text but an object'],
		['an empty list', '={{ $json.a }}', { a: [] }, 'is empty'],
	])('(%s from the item) is refused', async (_what, prompt, item, why) => {
		const refused = await refusalOf({ prompt }, json(item));
		expect(refused.message).toBe(`The parameter 'Prompt' ${why}`);
	});

	it('a list is taken where it has one entry, and else says how to make items of it', async () => {
		const parameters = { prompt: '={{ $json.prompts }}' };
		expect(await inputOf(parameters, json({ prompts: ['a'] }))).toEqual({ prompt: 'a' });
		const { message, description } = await refusalOf(parameters, json({ prompts: ['a', 'b'] }));
		expect(message).toBe("The parameter 'Prompt' is a list of 2, and takes one at a time");
		expect(description).toMatch(/Split Out.*e\.g\. \{\{ \$json\.prompts\[0\] \}\}\.$/);
	});

	it.each([
		['FAILURE', /which failed and has no result for 'Image URL'/, /If node.*error output/],
		['PENDING', /which is not finished and has no result for 'Image URL'/, /Wait for Task/],
	])('an incoming task that is %s is told from an empty field', async (state, message, wayOut) => {
		const items = json({ taskId: 'task-7', state, resultUrls: [] });
		const parameters = video({ imageSource: 'url', imageUrl: '={{ $json.resultUrls[0] }}' });
		const error = await refusalOf(parameters, items);
		expect(error.message).toMatch(message);
		expect(error.description).toMatch(wayOut);
		const file = await refusalOf(video({ imageSource: 'binary' }), items);
		expect(file.message).toContain('task task-7, which');
	});

	it.each([
		['Resource', "'audio'", { resource: 'audio' }, 'image, video or task'],
		['Operation', "'create'", { operation: 'create' }, 'generate'],
		['Operation', "'retry'", task('retry', {}), 'create, get, wait or redeliver'],
	])('a %s that does not exist is refused: %s', async (label, said, parameters, values) => {
		const { message, description } = await refusalOf({ prompt: 'A', ...parameters });
		expect(message).toBe(`The parameter '${label}' is ${said}`);
		expect(description).toContain(`must give ${values}.`);
	});

	it.each([
		['Image URL', { imageSource: 'url', imageUrl: '={{ $json.resultUrls[0] }}' }],
		['Input Data Field Name', { imageSource: 'binary' }],
	])('an incoming item of a dry run is told from an empty field: %s', async (label, given) => {
		const items = json({ taskId: null, state: null, resultUrls: [], dryRun: true });
		const { message } = await refusalOf(video(given), items);
		expect(message).toBe(`The incoming item is of a dry run and has no result for '${label}'`);
	});

	it.each([
		['Task ID', task('wait', { taskId: '={{ $json.id }}' })],
		['Prompt', { prompt: '' }],
		['Prompt', { prompt: '={{ $json.rewritten }}' }],
		['Image URL', video({ imageSource: 'url' })],
	])('%s is not empty because of a task that it does not name', async (label, parameters) => {
		const items = json({ taskId: 'task-7', state: 'PENDING' });
		const { message } = await refusalOf(parameters as IDataObject, items);
		expect(message).toBe(`The parameter '${label}' is empty`);
	});

	it('is a field that holds no picture', async () => {
		const text = { json: {}, binary: { data: { data: 'YQ==', mimeType: 'text/plain' } } };
		const { message } = await refusalOf(video({ imageSource: 'binary' }), [text]);
		expect(message).toBe("The field 'data' holds 'text/plain' and not a picture");
	});
});

/** So many empty items. */
const empty = (count: number) => json(...Array.from({ length: count }, () => ({})));

it.each<[string, IDataObject, number | undefined]>([
	['of the duration', video({ durationSeconds: 5 }), 0.5125],
	['of what additional input says', video({}, { additionalInput: '{ "duration": 10 }' }), 1.025],
	['of a model of the credential', image({}, { model: 'acme/painter' }), 0.05],
])('the price of a task is that %s', async (_what, parameters, price) => {
	const painter = { id: 'acme/painter', priceUsd: 0.05, unit: 'task' } as const;
	// Who has entered models has no placeholder.
	const more = parameters.model ? { models: [painter] } : {};
	expect((await createOf(parameters, json({}), more)).estimatedCostUsd).toBe(price);
});

describe('a value whose expression gives nothing', () => {
	const cells = [{}, { a: null }, { a: '' }];
	const given = '={{ $json.a }}';

	it.each<[label: string, parameters: IDataObject]>([
		['Dry Run', image({ dryRun: given })],
		['Max Cost (USD)', image({ maxCostUsd: given })],
		['Timeout', image({ timeout: given })],
		['Download Results', image({}, { downloadResults: given })],
		['One Image per Line', image({}, { promptPerLine: given })],
		// The model would choose the length, and so the price.
		['Duration', video({ durationSeconds: given })],
	])('is refused, and not guessed: %s', async (label, parameters) => {
		for (const row of cells) {
			const { message, description } = await refusalOf(parameters, json(row));
			expect(message).toBe(`The expression in '${label}' gives nothing`);
			expect(description).toMatch(/^Check that the incoming item has the field\. ./);
		}
	});

	it('is not taken for an address that was left empty: the trigger might be another', async () => {
		const parameters = image({}, { completion: 'trigger', callbackUrl: given });
		for (const row of cells) {
			const { message } = await refusalOf(parameters, json(row), { triggers: [TRIGGER] });
			expect(message).toBe("The expression in 'Callback URL' gives nothing");
		}
	});
});

it.each([
	[true, true],
	['true', true],
	[false, false],
	['false', false],
	['', false],
])('a dry run is asked for with %j: %s', async (dryRun, isDry) => {
	expect((await planOf(image({ dryRun }))).isDry).toBe(isDry);
});

describe('the budget', () => {
	it('is the lowest, where an expression gives several', async () => {
		const rows = json({ limit: 0 }, { limit: 9 }, { limit: 0.1 });
		const limited = image({ maxCostUsd: '={{ $json.limit }}' });
		const { message, description } = await refusalOf(limited, rows);
		expect(message).toBe('3 tasks would cost 0.24 USD, which is above the limit of 0.1 USD');
		expect(description).toContain("'Max Cost (USD)'");
	});

	it.each([0, 0.8])('of %d USD admits ten images of 0.08', async (maxCostUsd) => {
		expect((await planOf(image({ maxCostUsd }), empty(10))).items).toHaveLength(10);
	});

	it('a cent below the price refuses the whole batch', async () => {
		const { message } = await refusalOf(image({ maxCostUsd: 0.79 }), empty(10));
		expect(message).toBe('10 tasks would cost 0.8 USD, which is above the limit of 0.79 USD');
	});

	it('refuses a price that is not known, since the limit could not be kept', async () => {
		const { message, description } = await refusalOf(video({}, { maxCostUsd: 5 }));
		expect(message).toBe(
			"The price of model 'videovendor/video-model-2-mini' is by the second, and the item has no duration, so 'Max Cost (USD)' of 5 cannot be kept",
		);
		expect(description).toMatch(/^To make the price known, enter 'Duration .*No task was created/);
		const unknown = await refusalOf(image({ maxCostUsd: 5 }, { model: 'acme/new' }), empty(2));
		expect(unknown.message).toMatch(/^The price of model 'acme\/new' is not known, .* \(item 1\)$/);
		expect(unknown.description).toMatch(/^To make the price known, enter the model .*credential\./);
	});

	const paid = { known: { paidUsd: 0.16, isOrdered: ({ itemIndex }: ItemPlan) => itemIndex < 2 } };

	it.each([
		[0.32, undefined],
		[0.31, '2 tasks would cost 0.32 USD with 0.16 USD for the tasks before'],
	])('of %d USD counts what was paid before, and orders what is left: %s', async (...given) => {
		const [maxCostUsd, refusal] = given;
		const planned = planOf(image({ maxCostUsd }), empty(4), paid);
		if (refusal === undefined) expect((await planned).items).toHaveLength(4);
		else await expect(planned).rejects.toThrow(refusal);
	});

	it('does not count an ordered task anew, whatever it would cost now', async () => {
		const known = { paidUsd: 0.08, isOrdered: () => true };
		const planned = await planOf(image({ maxCostUsd: 0.01 }), empty(1), { known });
		expect(planned.items).toHaveLength(1);
	});

	it('does not count tasks that are only read', async () => {
		const parameters = task('get', { taskId: 'task-1', options: { maxCostUsd: 0.01 } });
		expect(await itemOf(parameters)).toMatchObject({ kind: 'read' });
	});
});

describe('the callback address', () => {
	const url = `https://n8n.test${TRIGGER_PATH}`;
	const own = { triggers: [TRIGGER] };
	const signed = `${url}?token=${callbackToken(TRIGGER_PATH, API_KEY)}`;
	const notifies = (callbackUrl?: string) =>
		image({}, { completion: 'trigger', ...(callbackUrl !== undefined && { callbackUrl }) });
	const addressOf = async (...given: Parameters<typeof createOf>) =>
		(await createOf(...given)).webhookUrl;

	const asGiven = notifies('={{ $json.url }}');
	it.each([[[url]], url])('is that of an expression, or of a list of one (%j)', async (given) => {
		expect(await addressOf(asGiven, json({ url: given }))).toBe(signed);
	});

	it.each([7, true, { url }, ['a', 'b']])('is not guessed from others (%j)', async (given) => {
		const refused = await refusalOf(asGiven, json({ url: given }), own);
		expect(refused.message).toContain("'Callback URL'");
	});

	it("is to be that of another workflow where n8n's engine v2 runs this one", async () => {
		const more = { ...own, settings: { engineType: 'v2' } as const };
		const { message } = await refusalOf(notifies(), undefined, more);
		expect(message).toContain('does not work with the engine v2');
		expect(await addressOf(notifies(url), undefined, more)).toBe(signed);
	});
});

describe('a large batch', () => {
	const plan = async (signal?: AbortSignal) =>
		await planOf(image(), empty(200), { context: { getExecutionCancelSignal: () => signal } });

	it('leaves the thread to the rest of n8n every 25 ms while it is planned', async () => {
		const clock = new BusyClock();
		expect((await plan()).items).toHaveLength(200);
		expect(clock.sleeps.length).toBeGreaterThanOrEqual(Math.floor(200 / 27));
		expect(clock.sleeps.length).toBeLessThan(20);
		expect(new Set(clock.sleeps)).toEqual(new Set([0]));
	});

	it('is given up while it is planned, where the execution is stopped', async () => {
		new BusyClock();
		const planned = async () => await plan(AbortSignal.abort());
		expect(await caught(planned)).toBeInstanceOf(Stopped);
	});
});

it('a dry run is one while something is still to be ordered', async () => {
	const parameters = image({ dryRun: true });
	const isOrdered = ({ itemIndex }: ItemPlan) => itemIndex === 0;
	const left = await planOf(parameters, empty(2), { known: { isOrdered } });
	const none = await planOf(parameters, empty(1), { known: { isOrdered } });
	expect([left.isDry, none.isDry]).toEqual([true, false]);
});

it('a run that may sleep has patience for as long as its Timeout, and one that is held for its own', async () => {
	const options = { timeout: 7200 };
	const [sleeping] = (await planOf(image(options))).items;
	expect(sleeping).toMatchObject({ timeoutMs: 7_200_000, patienceMs: 7_200_000 });
	const [leaving] = (await planOf(image(options, { completion: 'return' }))).items;
	expect(leaving).toMatchObject({ patienceMs: 600_000 });
});

it('a dry run is the whole run also where the item that asks for it is refused', async () => {
	const rows = json({ text: 'a', dry: false }, { text: '', dry: true });
	const parameters = { prompt: '={{ $json.text }}', options: { dryRun: '={{ $json.dry }}' } };
	expect(await planOf(parameters, rows)).toMatchObject({
		isDry: true,
		items: [{ kind: 'create' }, { kind: 'refused' }],
	});
});

describe('an object in a text of the input', () => {
	const shots = '={ "shots": [{ "text": "Draw {{ $json.a }}" }] }';

	it.each<[string, string, IDataObject]>([
		['Prompt', 'prompt', { prompt: '=Draw {{ $json.a }}' }],
		['Input, deep in it', 'shots', task('create', { model: 'a/b', input: shots })],
		['Additional Input', 'style', image({ additionalInput: '={ "style": "{{ $json.a }}" }' })],
	])('is refused, and not paid for: %s', async (_where, name, parameters) => {
		const { message, description } = await refusalOf(parameters, json({ a: { name: 'a mug' } }));
		expect(message).toBe(`The field '${name}' has an object in its text: '[object Object]'`);
		expect(description).toContain('Take one field of it');
	});

	it('may stand there where somebody has written it so, in the row or in the node', async () => {
		const prompt = 'A mug that says [object Object]';
		const rows = json({ prompt }, { prompt: 'b' });
		const { items } = await planOf({ prompt: '={{ $json.prompt }}' }, rows);
		expect(items).toMatchObject([{ input: { prompt } }, { input: { prompt: 'b' } }]);
		expect(await inputOf({ prompt })).toEqual({ prompt });
	});
});
