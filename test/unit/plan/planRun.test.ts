import type { IDataObject, INodeExecutionData } from 'n8n-workflow';

import { callbackToken } from '../../../nodes/MediaGeneration/callback/callbackToken';
import { InputFile } from '../../../nodes/MediaGeneration/plan/inputFile';
import { Stopped } from '../../../nodes/MediaGeneration/shared/clock';
import { API_KEY, TRIGGER, TRIGGER_PATH } from '../../workflow/engine';
import { BusyClock, caught, FakeClock } from '../support';
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
const PNG: INodeExecutionData = {
	json: {},
	binary: { data: { data: 'iVBORw==', mimeType: 'image/png' } },
};

describe('an image', () => {
	it('is planned with the defaults of the contract', async () => {
		expect(await itemOf({ prompt: 'A lighthouse' })).toEqual({
			itemIndex: 0,
			kind: 'create',
			completion: 'wait',
			retryFailed: 0,
			sendsLinks: false,
			isDry: false,
			model: 'imagevendor/image-model-2-text-to-image',
			input: { prompt: 'A lighthouse' },
			pollIntervalMs: 2000,
			timeoutMs: 86_400_000,
			patienceMs: 600_000,
			output: { download: false, binaryField: 'data', split: false },
			maxCostUsd: 0,
			estimatedCostUsd: 0.08,
		});
	});

	it('of another model has no known price', async () => {
		const plan = await createOf(image({}, { model: 'other/model' }));
		expect(plan).toMatchObject({ model: 'other/model', estimatedCostUsd: undefined });
	});

	it('takes its prompt from an expression of its own item', async () => {
		const { items } = await planOf({ prompt: '={{ $json.t }}' }, json({ t: 'a' }, { t: 'b' }));
		expect(items).toMatchObject([{ input: { prompt: 'a' } }, { input: { prompt: 'b' } }]);
	});
});

describe('the input', () => {
	it.each<[string, IDataObject, IDataObject]>([
		['has the prompt to the letter', { prompt: ' a\n b ' }, { prompt: ' a\n b ' }],
		[
			'may have [object Object] in a prompt that was written so',
			{ prompt: 'A mug that says [object Object]' },
			{ prompt: 'A mug that says [object Object]' },
		],
		[
			'has the address of the image where a file would be: in a list',
			video(fromUrl, { imageField: 'image_urls[]' }),
			{ prompt: 'Waves', image_urls: [PICTURE] },
		],
		[
			'has the address of the image where a file would be: in an object',
			video(fromUrl, { imageField: 'frames[0].url' }),
			{ prompt: 'Waves', frames: [{ url: PICTURE }] },
		],
		[
			'has the duration and the image in the fields that the options name',
			video(
				{ ...fromUrl, durationSeconds: 5 },
				{ imageField: 'first_frame', durationField: 'seconds' },
			),
			{ prompt: 'Waves', seconds: 5, first_frame: PICTURE },
		],
		[
			'uses image_url and duration where the options name none',
			video({ ...fromUrl, durationSeconds: 5 }),
			{ prompt: 'Waves', duration: 5, image_url: PICTURE },
		],
		['leaves a duration of 0 out', video({ durationSeconds: 0 }), { prompt: 'Waves' }],
		[
			'of any model is sent as it is',
			task('create', { model: 'a/b', input: '{ "prompt": "a", "deep": { "list": [1, null] } }' }),
			{ prompt: 'a', deep: { list: [1, null] } },
		],
		[
			'has additional input over the fields above it',
			image({ additionalInput: '{ "prompt": "other", "seed": 7 }' }),
			{ prompt: 'other', seed: 7 },
		],
		...['', '{}', '  '].map((additionalInput): [string, IDataObject, IDataObject] => [
			`is the same with the additional input '${additionalInput}'`,
			image({ additionalInput }),
			{ prompt: 'A lighthouse' },
		]),
	])('%s', async (_what, parameters, input) => {
		expect(await inputOf(parameters)).toEqual(input);
	});

	it('of an expression is taken, and left unchanged in its item', async () => {
		const items = json({ input: { prompt: 'a' } });
		const options = { additionalInput: '{ "seed": 7 }' };
		const parameters = task('create', { model: 'a/b', input: '={{ $json.input }}', options });
		expect(await inputOf(parameters, items)).toEqual({ prompt: 'a', seed: 7 });
		expect(items).toEqual(json({ input: { prompt: 'a' } }));
	});

	it('has a picture as a reference until it is sent', async () => {
		const input = await inputOf(video({ imageSource: 'binary' }), [PNG]);
		expect(input).toEqual({ prompt: 'Waves', image_url: expect.any(InputFile) });
		expect(JSON.stringify(input)).not.toContain('iVBORw');
	});
});

describe('a task to read', () => {
	const read = async (taskId: string, item: IDataObject = {}) =>
		await planOf(task('get', { taskId }), json(item, { taskId: 'last' }));

	it.each([
		['commas', 'a, b,c', {}],
		['line breaks', 'a\r\nb\n\n c ', {}],
		['a list', '={{ $json.ids }}', { ids: ['a', 'b', 'c'] }],
		['a list of texts', '={{ $json.ids }}', { ids: ['a,b', 'c'] }],
	])('may be many, by %s, each with the item it came from', async (_what, taskId, item) => {
		const { items } = await read(taskId, item);
		expect(items.slice(0, 3)).toMatchObject(
			['a', 'b', 'c'].map((id) => ({ kind: 'read', taskId: id, itemIndex: 0 })),
		);
		expect(items[3]).toMatchObject({ itemIndex: 1 });
	});

	it('keeps the other ids where one cannot be meant', async () => {
		const { items } = await read('a, .., b');
		expect(items).toMatchObject([
			{ taskId: 'a' },
			{ error: { message: "The parameter 'Task ID' cannot be a task id: '..'" } },
			{ taskId: 'b' },
			...['a', '..', 'b'].map(() => ({})),
		]);
		expect(items.map(({ itemIndex }) => itemIndex)).toEqual([0, 0, 0, 1, 1, 1]);
	});

	it.each([
		['get', false],
		['wait', true],
	])('%s: waits: %s', async (operation, wait) => {
		const plan = await itemOf(task(operation, { taskId: ' task-1 ' }));
		expect(plan).toMatchObject({ kind: 'read', taskId: 'task-1', wait });
	});

	it('may have a number as its id', async () => {
		const plan = await itemOf(task('get', { taskId: '={{ $json.id }}' }), json({ id: 42 }));
		expect(plan).toMatchObject({ taskId: '42' });
	});
});

describe('what cannot be meant', () => {
	type Case = [message: string, parameters: IDataObject, wayOut: RegExp];
	const options = (label: string, name: string, values: Array<string | number>, wayOut: RegExp) =>
		values.map((value): Case => [`'${label}' is '${value}'`, image({ [name]: value }), wayOut]);
	const generic = (input: string) => task('create', { model: 'a/b', input });
	const [from, url] = [{ imageSource: 'binary' }, { imageSource: 'url' }];
	const address = 'm.example.com/1.png';
	const extra = 'Additional Input (JSON)';

	it.each<Case>([
		["'Prompt' is empty", image({}, { prompt: '' }), /Describe/],
		["'Prompt' is empty", image({}, { prompt: '  ' }), /Describe/],
		["'Model' is empty", image({}, { model: ' ' }), /imagevendor/],
		...options('Poll Interval', 'pollInterval', [1, 6, 'a'], /2 to 5.*sec/),
		...options('Timeout', 'timeout', [-5, 'long'], /0 or more.*seconds/),
		...options('Suspend After', 'suspendAfter', [-1, 'soon'], /0 or more/),
		...options('Check Interval', 'checkInterval', [0.5, 43_201], /from 1 to 43200 \(minutes/),
		...options('Max Cost (USD)', 'maxCostUsd', [-1, 'cheap'], /0 or more/),
		...options('Price per Task (USD)', 'pricePerTaskUsd', [-1, 'cheap'], /0 or more/),
		...options('Max Tasks at the Same Time', 'maxInFlight', [0, -1, 1.5, 'many'], /of 1 or more/),
		...options('Retry Failed Tasks', 'retryFailed', [6, -1, 1.5, 'often'], /from 0 to 5/),
		["'Duration' is '-1'", video({ durationSeconds: -1 }), /0 or more/],
		[
			`'${extra}' is not valid JSON`,
			image({ additionalInput: '{ a: 7 }' }),
			/"seed": 7.*parser says/,
		],
		[`'${extra}' is a list`, image({ additionalInput: '[1]' }), /object/],
		[`'${extra}' is '7'`, image({ additionalInput: '7' }), /object/],
		[
			`'${extra}' is not valid JSON`,
			image({ additionalInput: '={{ ({ seed: NaN }) }}' }),
			/'seed' is 'NaN'/,
		],
		[`'${extra}' is '1970-01-01T`, image({ additionalInput: '={{ new Date(0) }}' }), /object/],
		["'Input' is '20", generic('={{ $now }}'), /object/],
		["'Image URL' is empty", video(url), /Reference Image/],
		["'Reference Image' is 'None'", video({ imageSource: '={{ "None" }}' }), /none, url or binary/],
		[
			`'Image URL' is not a valid address: '${address}'`,
			video({ ...url, imageUrl: address }),
			/https:/,
		],
		[
			"'Image URL' starts with 'file:'",
			video({ ...url, imageUrl: 'file:///etc/passwd' }),
			/https:/,
		],
		["'Input Data Field Name' is empty", video({ ...from, binaryPropertyName: '' }), /data/],
		["'Input' is empty", generic('{}'), /prompt/],
		["'Input' is a list", generic('[]'), /object/],
		["'Task ID' is empty", task('get', { taskId: '' }), /taskId/],
		["'Task ID' cannot be a task id: '..'", task('wait', { taskId: '..' }), /taskId/],
		[
			"'Callback URL' is not a valid address: 'here'",
			image({}, { completion: 'trigger', callbackUrl: 'here' }),
			/production URL/,
		],
		// Completions that this version does not know.
		...['later', 'poll', 'suspend', null, false, 0].map((completion): Case => [
			`'When to Continue' is '${completion}'`,
			image({}, { completion }),
			/Choose/,
		]),
	])('is refused with the parameter, the value and the way out: %s', async (...given) => {
		const [message, parameters, wayOut] = given;
		const error = await refusalOf(parameters);
		expect(error.message).toContain(`The parameter ${message}`);
		expect(error.description).toMatch(wayOut);
	});

	it.each<[string, IDataObject, IDataObject, string]>([
		['NaN', { prompt: '={{ $json.a }}' }, { a: NaN }, "'Prompt' is not a text but 'NaN'"],
		[
			'Infinity',
			{ prompt: '={{ $json.a }}' },
			{ a: Infinity },
			"'Prompt' is not a text but 'Infinity'",
		],
		['an object', { prompt: '={{ $json }}' }, { a: 1 }, "'Prompt' is not a text but an object"],
		[
			'an object in a text',
			{ prompt: '=Draw {{ $json.a }}' },
			{ a: { name: 'a mug' } },
			"'Prompt' has an object in its text: '[object Object]'",
		],
		['an empty list', { prompt: '={{ $json.a }}' }, { a: [] }, "'Prompt' is empty"],
	])('(%s from the item) is refused', async (_what, parameters, item, message) => {
		const refused = await refusalOf(parameters, json(item));
		expect(refused.message).toBe(`The parameter ${message}`);
	});

	it('a list is taken where it has one entry, and else says how to make items of it', async () => {
		const parameters = { prompt: '={{ $json.prompts }}' };
		expect(await inputOf(parameters, json({ prompts: ['a'] }))).toEqual({ prompt: 'a' });
		expect(await refusalOf(parameters, json({ prompts: ['a', 'b'] }))).toMatchObject({
			message: "The parameter 'Prompt' is a list of 2, and takes one at a time",
			description: expect.stringMatching(/Split Out.*resultUrls\[0\]/) as string,
		});
	});

	it.each([
		['FAILURE', /which failed and has no result for 'Image URL'/, /If node.*error output/],
		['PENDING', /which is not finished and has no result for 'Image URL'/, /Task → Wait/],
	])('an incoming task that is %s is told from an empty field', async (state, message, wayOut) => {
		const items = json({ taskId: 'task-7', state, resultUrls: [] });
		const parameters = video({ imageSource: 'url', imageUrl: '={{ $json.resultUrls[0] }}' });
		const error = await refusalOf(parameters, items);
		expect(error.message).toMatch(message);
		expect(error.description).toMatch(wayOut);
		const file = await refusalOf(video({ imageSource: 'binary' }), items);
		expect(file.message).toContain('task task-7, which');
	});

	it('is a field that holds no picture, or an item without the field', async () => {
		const text = { json: {}, binary: { data: { data: 'YQ==', mimeType: 'text/plain' } } };
		const { message } = await refusalOf(video({ imageSource: 'binary' }), [text]);
		expect(message).toBe("The field 'data' holds 'text/plain' and not a picture");
		const none = await refusalOf(video({ imageSource: 'binary', binaryPropertyName: 'photo' }));
		expect(none.message).toContain('photo');
	});

	it('is an error of its own item alone', async () => {
		const items = json({ text: 'a' }, { text: '' }, { text: 'c' });
		const plan = await planOf({ prompt: '={{ $json.text }}' }, items);
		expect(plan.items.map(({ kind }) => kind)).toEqual(['create', 'refused', 'create']);
	});
});

it.each([
	[{}, 10],
	[{ maxInFlight: 1 }, 1],
	[{ maxInFlight: 200 }, 200],
])('the number of tasks in flight with the options %j is %d', async (options, maxInFlight) => {
	expect((await planOf(image(options))).maxInFlight).toBe(maxInFlight);
});

describe('the price of a task', () => {
	const other = (pricePerTaskUsd: number) => image({ pricePerTaskUsd }, { model: 'other/model' });

	it.each<[string, IDataObject, number | undefined]>([
		['that the user names holds for any model', other(0.25), 0.25],
		['that the user names is above the price list', image({ pricePerTaskUsd: 0.25 }), 0.25],
		['of 0 is that of the price list', image({ pricePerTaskUsd: 0 }), 0.08],
		['of 0 is none where there is none', other(0), undefined],
		[
			'is that of the duration',
			video({ ...fromUrl, durationSeconds: 5 }, { durationField: 'seconds' }),
			0.5125,
		],
		[
			'counts what additional input says',
			video({ durationSeconds: 5 }, { additionalInput: '{ "duration": 10 }' }),
			1.025,
		],
	])('%s', async (_what, parameters, price) => {
		expect((await createOf(parameters)).estimatedCostUsd).toBe(price);
	});
});

describe('a dry run', () => {
	const dry = async (dryRun: unknown, items = json({})) =>
		await planOf(image({ dryRun: dryRun as string }), items);

	it.each([
		[true, true],
		['true', true],
		[false, false],
		['false', false],
		['', false],
	])('is asked for with %j: %s', async (dryRun, isDry) => {
		expect((await dry(dryRun)).isDry).toBe(isDry);
	});

	it.each(['yes', 1, 'TRUE '])('is not guessed at from %j', async (dryRun) => {
		expect((await dry(dryRun)).items).toMatchObject([
			{
				error: {
					message: `The parameter 'Dry Run' is '${dryRun}'`,
					description: expect.any(String),
				},
			},
		]);
	});

	it.each([{}, { dry: null }, { dry: '' }])(
		'is not left out where its expression gives nothing (%j): the tasks would be paid for',
		async (row) => {
			const { message } = await refusalOf(image({ dryRun: '={{ $json.dry }}' }), json(row));
			expect(message).toBe("The expression in 'Dry Run' gives nothing");
		},
	);

	it('is the whole run where one item asks for it', async () => {
		const { isDry } = await dry('={{ $json.dry }}', json({ dry: false }, { dry: true }));
		expect(isDry).toBe(true);
	});
});

describe('the budget', () => {
	const batch = json(...Array.from({ length: 10 }, () => ({})));

	it('is the lowest, where an expression gives several', async () => {
		const rows = json({ limit: 0 }, { limit: 9 }, { limit: 0.1 });
		const { message } = await refusalOf(image({ maxCostUsd: '={{ $json.limit }}' }), rows);
		expect(message).toBe('3 tasks would cost 0.24 USD, which is above the limit of 0.1 USD');
	});

	it.each([0, 0.8, 1])('of %d USD admits ten images of 0.08', async (maxCostUsd) => {
		expect((await planOf(image({ maxCostUsd }), batch)).items).toHaveLength(10);
	});

	it('below the price refuses the whole batch, naming both figures', async () => {
		expect(await refusalOf(image({ maxCostUsd: 0.79 }), batch)).toMatchObject({
			message: '10 tasks would cost 0.8 USD, which is above the limit of 0.79 USD',
			description: expect.stringContaining("'Max Cost (USD)'") as string,
		});
		const named = image({ pricePerTaskUsd: 0.25, maxCostUsd: 0.7 }, { model: 'other/model' });
		const { message } = await refusalOf(named, batch.slice(7));
		expect(message).toBe('3 tasks would cost 0.75 USD, which is above the limit of 0.7 USD');
	});

	it('refuses a price that is not known, since the limit could not be kept', async () => {
		const { message, description } = await refusalOf(video({}, { maxCostUsd: 5 }));
		expect(message).toContain("so 'Max Cost (USD)' of 5 cannot be kept (item 1)");
		expect(description).toMatch(/'Price per Task \(USD\)'.*'Duration'.*No task was created/);
	});

	it.each([{}, { limit: null }, { limit: '' }])(
		'is not unlimited where its expression gives nothing (%j)',
		async (row) => {
			const { message } = await refusalOf(image({ maxCostUsd: '={{ $json.limit }}' }), json(row));
			expect(message).toBe("The expression in 'Max Cost (USD)' gives nothing");
		},
	);

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

	it('is that of the trigger of this workflow, with its token', async () => {
		expect(await addressOf(notifies(), undefined, own)).toBe(signed);
	});

	it('is the pasted one where there is one', async () => {
		expect(await addressOf(notifies(` ${url} `))).toBe(signed);
	});

	it.each([[[url]], url])(
		'is that of an expression, also where it gives a list of one (%j)',
		async (given) => {
			expect(await addressOf(notifies('={{ $json.url }}'), json({ url: given }))).toBe(signed);
		},
	);

	it.each([7, true, { url }, ['a', 'b']])(
		'is not that of this workflow where an expression gives something else (%j)',
		async (given) => {
			const refused = await refusalOf(notifies('={{ $json.url }}'), json({ url: given }), own);
			expect(refused.message).toContain("'Callback URL'");
		},
	);

	it("is to be that of another workflow where n8n's engine v2 runs this one", async () => {
		const more = { ...own, settings: { engineType: 'v2' } as const };
		const { message } = await refusalOf(notifies(), undefined, more);
		expect(message).toContain('does not work with the engine v2');
		expect(await addressOf(notifies(url), undefined, more)).toBe(signed);
	});

	it.each(['wait', 'return'])('is left out with the completion %s', async (completion) => {
		const plan = await createOf(image({}, { completion }), undefined, own);
		expect(plan.webhookUrl).toBeUndefined();
	});

	it.each([
		['no trigger', [], 'No active Media Generation Trigger'],
		['two triggers', [TRIGGER, TRIGGER], 'more than one'],
	])('cannot be told with %s in the workflow', async (_what, triggers, complaint) => {
		const { message, description } = await refusalOf(notifies(), undefined, { triggers });
		expect(message).toContain(complaint);
		expect(description).toContain("'Callback URL'");
	});

	it('of a suspended run is evaluated once, however many items there are', async () => {
		const evaluateExpression = jest.fn(() => 'https://n8n.test/webhook-waiting/1');
		const batch = json(...Array.from({ length: 500 }, () => ({})));
		const context = { evaluateExpression: evaluateExpression as never, getParentNodes: () => [] };
		const { items } = await planOf(image({ suspendAfter: 0 }), batch, { context });
		expect(evaluateExpression).toHaveBeenCalledTimes(1);
		const addresses = items.map((item) => 'webhookUrl' in item && item.webhookUrl);
		expect(new Set(addresses)).toEqual(new Set([expect.stringContaining('/callback?') as string]));
	});
});

describe('a large batch', () => {
	const plan = async (clock: FakeClock, signal?: AbortSignal) =>
		await planOf(
			image(),
			json(...Array.from({ length: 200 }, () => ({}))),
			{ context: { getExecutionCancelSignal: () => signal } },
			clock,
		);

	it('leaves the thread to the rest of n8n every 25 ms while it is planned', async () => {
		const clock = new BusyClock();
		expect((await plan(clock)).items).toHaveLength(200);
		expect(clock.sleeps.length).toBeGreaterThanOrEqual(Math.floor(200 / 27));
		expect(new Set(clock.sleeps)).toEqual(new Set([0]));
	});

	it('is planned in one go where that takes no time', async () => {
		const clock = new FakeClock();
		await plan(clock);
		expect(clock.sleeps).toEqual([]);
	});

	it('is given up while it is planned, where the execution is stopped', async () => {
		const planned = async () => await plan(new BusyClock(), AbortSignal.abort());
		expect(await caught(planned)).toBeInstanceOf(Stopped);
	});
});
