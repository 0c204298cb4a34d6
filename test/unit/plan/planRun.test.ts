import type { IDataObject, INodeExecutionData } from 'n8n-workflow';

import { callbackToken } from '../../../nodes/MediaGeneration/callback/callbackToken';
import { ItemFile } from '../../../nodes/MediaGeneration/plan/itemFile';
import type { CreatePlan, TaskPlan } from '../../../nodes/MediaGeneration/plan/taskPlan';
import { planRun } from '../../../nodes/MediaGeneration/plan/planRun';
import { Stopped, systemClock } from '../../../nodes/MediaGeneration/shared/clock';
import { ItemError } from '../../../nodes/MediaGeneration/shared/itemError';
import { API_KEY, executeContext, type TestWorkflow } from '../../workflow/engine';
import { caught, FakeClock } from '../support';

interface Given {
	parameters: IDataObject;
	items?: INodeExecutionData[];
	staticData?: IDataObject;
	settings?: TestWorkflow['settings'];
}

const planOf = async ({ parameters, ...rest }: Given) =>
	await planRun(
		executeContext({
			node: { parameters },
			credential: { baseUrl: 'https://api.example.com', apiKey: API_KEY },
			...rest,
		}),
		{ apiKey: API_KEY, baseUrl: 'https://api.example.com' },
		systemClock,
	);

/** The plan of the one item. */
async function itemOf(given: Given): Promise<TaskPlan> {
	const [item] = (await planOf(given)).items;
	if (!item) throw new Error('No item');
	if (item instanceof ItemError) throw item;
	return item;
}

const createOf = async (given: Given) => (await itemOf(given)) as CreatePlan;

const json = (...items: IDataObject[]): INodeExecutionData[] =>
	items.map((item) => ({ json: item }));

const image = (options: IDataObject = {}, more: IDataObject = {}) => ({
	prompt: 'A lighthouse',
	...more,
	options,
});
const video = (more: IDataObject = {}, options: IDataObject = {}) => ({
	resource: 'video',
	prompt: 'Waves',
	imageSource: 'none',
	...more,
	options,
});
const PNG: INodeExecutionData = {
	json: {},
	binary: { data: { data: 'iVBORw==', mimeType: 'image/png' } },
};

describe('an image', () => {
	it('is planned with the defaults of the contract', async () => {
		expect(await itemOf({ parameters: { prompt: 'A lighthouse' } })).toEqual({
			itemIndex: 0,
			kind: 'create',
			completion: 'wait',
			retryFailed: 0,
			model: 'imagevendor/image-model-2-text-to-image',
			input: { prompt: 'A lighthouse' },
			pollIntervalMs: 2000,
			timeoutMs: 86_400_000,
			patienceMs: 600_000,
			output: { download: false, binaryField: 'data', split: false },
			estimatedCostUsd: 0.08,
		});
	});

	it('of another model has no known price', async () => {
		const plan = await createOf({ parameters: image({}, { model: 'other/model' }) });
		expect(plan).toMatchObject({ model: 'other/model', estimatedCostUsd: undefined });
	});

	it('takes its prompt from an expression of its own item', async () => {
		const { items } = await planOf({
			parameters: { prompt: '={{ $json.text }}' },
			items: json({ text: 'a' }, { text: 'b' }),
		});
		expect(items).toMatchObject([{ input: { prompt: 'a' } }, { input: { prompt: 'b' } }]);
	});

	it('keeps the prompt to the letter, white space and all', async () => {
		expect((await createOf({ parameters: { prompt: ' a\n b ' } })).input).toEqual({
			prompt: ' a\n b ',
		});
	});
});

it.each([NaN, Infinity])('a prompt that is %d, which nobody means, is refused', async (price) => {
	const given = { parameters: { prompt: '={{ $json.price }}' }, items: json({ price }) };
	expect(await caught(() => itemOf(given))).toMatchObject({
		message: `The parameter 'Prompt' is not a text but '${price}'`,
	});
});

it('a prompt with an object in its text says so, unless it was written so', async () => {
	const given = {
		parameters: { prompt: '=Draw {{ $json.product }}' },
		items: json({ product: { name: 'a mug' } }),
	};
	expect(await caught(() => itemOf(given))).toMatchObject({
		message: "The parameter 'Prompt' has an object in its text: '[object Object]'",
	});
	const written = { prompt: 'A mug that says [object Object]' };
	expect((await createOf({ parameters: written })).input).toEqual(written);
});

describe('a video', () => {
	it.each([
		['image_urls[]', { image_urls: ['https://m.example.com/1.png'] }],
		['frames[0].url', { frames: [{ url: 'https://m.example.com/1.png' }] }],
	])('has the address of the image where a file would be: in %s', async (imageField, fields) => {
		const { input } = await createOf({
			parameters: video(
				{ imageSource: 'url', imageUrl: 'https://m.example.com/1.png' },
				{ imageField },
			),
		});
		expect(input).toEqual({ prompt: 'Waves', ...fields });
	});

	it('has the duration and the image in the fields that the options name', async () => {
		const { input, estimatedCostUsd } = await createOf({
			parameters: video(
				{ imageSource: 'url', imageUrl: 'https://m.example.com/1.png', durationSeconds: 5 },
				{ imageField: 'first_frame', durationField: 'seconds' },
			),
		});
		expect(input).toEqual({
			prompt: 'Waves',
			seconds: 5,
			first_frame: 'https://m.example.com/1.png',
		});
		expect(estimatedCostUsd).toBe(0.5125);
	});

	it('uses image_url and duration where the options name none', async () => {
		const { input } = await createOf({
			parameters: video({
				imageSource: 'url',
				imageUrl: 'https://m.example.com/1.png',
				durationSeconds: 5,
			}),
		});
		expect(Object.keys(input)).toEqual(['prompt', 'duration', 'image_url']);
	});

	it('leaves a duration of 0 out', async () => {
		expect((await createOf({ parameters: video({ durationSeconds: 0 }) })).input).toEqual({
			prompt: 'Waves',
		});
	});

	it('keeps its picture as a reference until it is sent', async () => {
		const { input } = await createOf({
			parameters: video({ imageSource: 'binary' }),
			items: [PNG],
		});
		expect(input).toEqual({ prompt: 'Waves', image_url: expect.any(ItemFile) });
		expect(JSON.stringify(input)).not.toContain('iVBORw');
	});
});

describe('a task of any model', () => {
	it('sends its input as it is', async () => {
		const parameters = { resource: 'task', operation: 'create', model: 'any/model' };
		const input = '{ "prompt": "a", "deep": { "list": [1, null] } }';
		expect(await createOf({ parameters: { ...parameters, input } })).toMatchObject({
			model: 'any/model',
			input: { prompt: 'a', deep: { list: [1, null] } },
		});
	});

	it('takes an object from an expression, and leaves it unchanged', async () => {
		const items = json({ input: { prompt: 'a' } });
		const parameters = {
			resource: 'task',
			operation: 'create',
			model: 'any/model',
			input: '={{ $json.input }}',
			options: { additionalInput: '{ "seed": 7 }' },
		};
		expect((await createOf({ parameters, items })).input).toEqual({ prompt: 'a', seed: 7 });
		expect(items).toEqual(json({ input: { prompt: 'a' } }));
	});
});

describe('a task to read', () => {
	const read = async (taskId: unknown, item: IDataObject = {}) =>
		await planOf({
			parameters: { resource: 'task', operation: 'get', taskId: taskId as string },
			items: json(item, { taskId: 'last' }),
		});

	it.each([
		['commas', 'a, b,c', {}],
		['line breaks', 'a\r\nb\n\n c ', {}],
		['a list', '={{ $json.ids }}', { ids: ['a', 'b', 'c'] }],
		['a list of texts', '={{ $json.ids }}', { ids: ['a,b', 'c'] }],
	])('may be many, by %s, each with the item it came from', async (_what, taskId, item) => {
		const { items, inputOf } = await read(taskId, item);
		expect(items.slice(0, 3)).toMatchObject(
			['a', 'b', 'c'].map((id) => ({ kind: 'read', taskId: id, itemIndex: 0 })),
		);
		expect(inputOf.slice(0, 4)).toEqual([0, 0, 0, 1]);
	});

	it('keeps the other ids where one cannot be meant', async () => {
		const { items, inputOf } = await read('a, .., b');
		expect(items).toMatchObject([
			{ taskId: 'a' },
			{ message: "The parameter 'Task ID' cannot be a task id: '..'" },
			{ taskId: 'b' },
			...['a', '..', 'b'].map(() => ({})),
		]);
		expect(inputOf).toEqual([0, 0, 0, 1, 1, 1]);
	});

	it.each([
		['get', false],
		['wait', true],
	])('%s: waits: %s', async (operation, wait) => {
		const parameters = { resource: 'task', operation, taskId: ' task-1 ' };
		expect(await itemOf({ parameters })).toMatchObject({ kind: 'read', taskId: 'task-1', wait });
	});

	it('may have a number as its id', async () => {
		const parameters = { resource: 'task', operation: 'get', taskId: '={{ $json.id }}' };
		expect(await itemOf({ parameters, items: json({ id: 42 }) })).toMatchObject({ taskId: '42' });
	});
});

describe('additional input', () => {
	it('is merged over the fields above it', async () => {
		const parameters = image({ additionalInput: '{ "prompt": "other", "seed": 7 }' });
		expect((await createOf({ parameters })).input).toEqual({ prompt: 'other', seed: 7 });
	});

	it('counts for the price', async () => {
		const parameters = video({ durationSeconds: 5 }, { additionalInput: '{ "duration": 10 }' });
		expect((await createOf({ parameters })).estimatedCostUsd).toBe(1.025);
	});

	it.each(['', '{}', '  '])('%j adds nothing', async (additionalInput) => {
		expect((await createOf({ parameters: image({ additionalInput }) })).input).toEqual({
			prompt: 'A lighthouse',
		});
	});
});

describe('what cannot be meant', () => {
	const bad: Array<[string, IDataObject, string, RegExp]> = [
		['no prompt', image({}, { prompt: '' }), "'Prompt' is empty", /Describe/],
		['a prompt of spaces', image({}, { prompt: '  ' }), "'Prompt' is empty", /Describe/],
		['no model', image({}, { model: ' ' }), "'Model' is empty", /imagevendor/],
		[
			'a poll interval of 1 s',
			image({ pollInterval: 1 }),
			"'Poll Interval' is '1'",
			/2 to 5.*seconds/,
		],
		['a poll interval of 6 s', image({ pollInterval: 6 }), "'Poll Interval' is '6'", /2 to 5/],
		[
			'a text as the interval',
			image({ pollInterval: 'often' }),
			"'Poll Interval' is 'often'",
			/2 to 5/,
		],
		['a negative timeout', image({ timeout: -5 }), "'Timeout' is '-5'", /0 or more.*seconds/],
		['a timeout in words', image({ timeout: 'long' }), "'Timeout' is 'long'", /0 or more/],
		['a negative duration', video({ durationSeconds: -1 }), "'Duration' is '-1'", /0 or more/],
		[
			'broken JSON',
			image({ additionalInput: '{ seed: 7 }' }),
			"'Additional Input (JSON)' is not valid JSON",
			/"seed": 7.*parser says/,
		],
		['a list', image({ additionalInput: '[1]' }), "'Additional Input (JSON)' is a list", /object/],
		[
			'a bare number',
			image({ additionalInput: '7' }),
			"'Additional Input (JSON)' is '7'",
			/object/,
		],
		['no image URL', video({ imageSource: 'url' }), "'Image URL' is empty", /Reference Image/],
		[
			'half an image URL',
			video({ imageSource: 'url', imageUrl: 'm.example.com/1.png' }),
			"'Image URL' is not a valid address: 'm.example.com/1.png'",
			/https:/,
		],
		[
			'a file URL',
			video({ imageSource: 'url', imageUrl: 'file:///etc/passwd' }),
			"'Image URL' starts with 'file:'",
			/https:/,
		],
		[
			'no field of the picture',
			video({ imageSource: 'binary', binaryPropertyName: '' }),
			"'Input Data Field Name' is empty",
			/data/,
		],
		[
			'no input',
			{ resource: 'task', operation: 'create', model: 'a/b', input: '{}' },
			"'Input' is empty",
			/prompt/,
		],
		[
			'an input that is no object',
			{ resource: 'task', operation: 'create', model: 'a/b', input: '[]' },
			"'Input' is a list",
			/object/,
		],
		[
			'no task id',
			{ resource: 'task', operation: 'get', taskId: '' },
			"'Task ID' is empty",
			/taskId/,
		],
		[
			'.. as a task id',
			{ resource: 'task', operation: 'wait', taskId: '..' },
			"'Task ID' cannot be a task id: '..'",
			/taskId/,
		],
		[
			'a callback URL that is none',
			image({}, { completion: 'trigger', callbackUrl: 'here' }),
			"'Callback URL' is not a valid address: 'here'",
			/production URL/,
		],
	];

	it.each(bad)(
		'%s names the parameter, the value and the way out',
		async (_what, parameters, message, wayOut) => {
			const error = (await caught(() => itemOf({ parameters }))) as ItemError;
			expect(error.message).toContain(`The parameter ${message}`);
			expect(error.description).toMatch(wayOut);
		},
	);

	it('a list is taken where it has one entry, and else says how to make items of it', async () => {
		const parameters = { prompt: '={{ $json.prompts }}' };
		expect((await createOf({ parameters, items: json({ prompts: ['a'] }) })).input).toEqual({
			prompt: 'a',
		});
		const error = await caught(() =>
			createOf({ parameters, items: json({ prompts: ['a', 'b'] }) }),
		);
		expect(error).toMatchObject({
			message: "The parameter 'Prompt' is a list of 2, and takes one at a time",
			description: expect.stringMatching(/Split Out.*resultUrls\[0\]/) as string,
		});
		const none = await caught(() => createOf({ parameters, items: json({ prompts: [] }) }));
		expect(none.message).toBe("The parameter 'Prompt' is empty");
	});

	it.each([
		['FAILURE', /which failed and has no result for 'Image URL'/, /If node.*second output/],
		['PENDING', /which is not finished and has no result for 'Image URL'/, /Task → Wait/],
	])('an incoming task that is %s is told from an empty field', async (state, message, wayOut) => {
		const items = json({ taskId: 'task-7', state, resultUrls: [] });
		const parameters = video({ imageSource: 'url', imageUrl: '={{ $json.resultUrls[0] }}' });
		const error = await caught(() => createOf({ parameters, items }));
		expect(error).toMatchObject({
			message: expect.stringMatching(message) as string,
			description: expect.stringMatching(wayOut) as string,
		});
		const file = await caught(() =>
			createOf({ parameters: video({ imageSource: 'binary' }), items }),
		);
		expect(file.message).toContain('task task-7, which');
	});

	it('a prompt that is an object says so', async () => {
		const given = { parameters: { prompt: '={{ $json }}' }, items: json({ a: 1 }) };
		const { message } = await caught(() => itemOf(given));
		expect(message).toContain("'Prompt' is not a text but an object");
	});

	it('a field that holds no picture is named with what it holds', async () => {
		const text = { json: {}, binary: { data: { data: 'YQ==', mimeType: 'text/plain' } } };
		const given = { parameters: video({ imageSource: 'binary' }), items: [text] };
		const { message } = await caught(() => itemOf(given));
		expect(message).toBe("The field 'data' holds 'text/plain' and not a picture");
	});

	it('an item without the field of the picture is refused before any request', async () => {
		const given = { parameters: video({ imageSource: 'binary', binaryPropertyName: 'photo' }) };
		const { message } = await caught(() => itemOf(given));
		expect(message).toContain('photo');
	});

	it('is an error of its own item alone', async () => {
		const { items } = await planOf({
			parameters: { prompt: '={{ $json.text }}' },
			items: json({ text: 'a' }, { text: '' }, { text: 'c' }),
		});
		expect(items.map((item) => item instanceof ItemError)).toEqual([false, true, false]);
	});

	it.each([0, -1, 1.5, 'many'])(
		'%j tasks in flight are refused for the whole run',
		async (maxInFlight) => {
			await expect(planOf({ parameters: image({ maxInFlight }) })).rejects.toThrow(
				`'Max Tasks at the Same Time' is '${maxInFlight}'`,
			);
		},
	);
});

describe('the number of tasks in flight', () => {
	it.each([
		[{}, 10],
		[{ maxInFlight: 1 }, 1],
		[{ maxInFlight: 200 }, 200],
	])('with the options %j is %d', async (options, maxInFlight) => {
		expect((await planOf({ parameters: image(options) })).maxInFlight).toBe(maxInFlight);
	});
});

describe('the price of a task', () => {
	const other = (options: IDataObject) => image(options, { model: 'other/model' });

	it('that the user names holds for any model', async () => {
		const plan = await createOf({ parameters: other({ pricePerTaskUsd: 0.25 }) });
		expect(plan.estimatedCostUsd).toBe(0.25);
		expect(
			(await createOf({ parameters: image({ pricePerTaskUsd: 0.25 }) })).estimatedCostUsd,
		).toBe(0.25);
	});

	it('of 0 is that of the price list', async () => {
		expect((await createOf({ parameters: image({ pricePerTaskUsd: 0 }) })).estimatedCostUsd).toBe(
			0.08,
		);
		expect(
			(await createOf({ parameters: other({ pricePerTaskUsd: 0 }) })).estimatedCostUsd,
		).toBeUndefined();
	});

	it('counts for the budget', async () => {
		const given = {
			parameters: other({ pricePerTaskUsd: 0.25, maxCostUsd: 0.7 }),
			items: json({}, {}, {}),
		};
		expect((await caught(() => planOf(given))).message).toBe(
			'3 tasks would cost 0.75 USD, which is above the limit of 0.7 USD',
		);
	});

	it.each([-1, 'cheap'])('of %j is refused', async (pricePerTaskUsd) => {
		const { message } = await caught(() => createOf({ parameters: other({ pricePerTaskUsd }) }));
		expect(message).toBe(`The parameter 'Price per Task (USD)' is '${pricePerTaskUsd}'`);
	});
});

describe('a dry run', () => {
	const dry = async (dryRun: unknown, items = json({})) =>
		await planOf({ parameters: image({ dryRun: dryRun as string }), items });

	it.each([
		[true, true],
		['true', true],
		[false, false],
		['false', false],
		['', false],
		['={{ undefined }}', false],
	])('is asked for with %j: %s', async (dryRun, isDry) => {
		expect((await dry(dryRun)).isDry).toBe(isDry);
	});

	it.each(['yes', 1, 'TRUE '])('is not guessed at from %j', async (dryRun) => {
		expect((await dry(dryRun)).items).toMatchObject([
			{ message: `The parameter 'Dry Run' is '${dryRun}'`, description: expect.any(String) },
		]);
	});

	it('is the whole run where one item asks for it', async () => {
		const { isDry } = await dry('={{ $json.dry }}', json({ dry: false }, { dry: true }));
		expect(isDry).toBe(true);
	});
});

describe('the budget', () => {
	const batch = json(...Array.from({ length: 10 }, () => ({})));

	it.each([0, 0.8, 1])('of %d USD admits ten images of 0.08', async (maxCostUsd) => {
		const { items } = await planOf({ parameters: image({ maxCostUsd }), items: batch });
		expect(items).toHaveLength(10);
	});

	it('below the price refuses the whole batch, naming both figures', async () => {
		const given = { parameters: image({ maxCostUsd: 0.79 }), items: batch };
		expect(await caught(() => planOf(given))).toMatchObject({
			message: '10 tasks would cost 0.8 USD, which is above the limit of 0.79 USD',
			description: expect.stringContaining("'Max Cost (USD)'") as string,
		});
	});

	it('refuses a price that is not known, since the limit could not be kept', async () => {
		const given = { parameters: video({}, { maxCostUsd: 5 }) };
		expect(await caught(() => planOf(given))).toMatchObject({
			message: expect.stringContaining(
				"so 'Max Cost (USD)' of 5 cannot be kept (item 1)",
			) as string,
			description: expect.stringMatching(
				/'Price per Task \(USD\)'.*'Duration'.*No task was created/,
			) as string,
		});
	});

	it.each([-1, 'cheap'])('of %j is refused', async (maxCostUsd) => {
		await expect(planOf({ parameters: image({ maxCostUsd }) })).rejects.toThrow(
			`'Max Cost (USD)' is '${maxCostUsd}'`,
		);
	});

	it.each([{}, { limit: null }, { limit: '' }])(
		'is not unlimited where its expression gives nothing (%j)',
		async (row) => {
			const parameters = image({ maxCostUsd: '={{ $json.limit }}' });
			await expect(planOf({ parameters, items: json(row) })).rejects.toThrow(
				"The expression in 'Max Cost (USD)' gives nothing",
			);
		},
	);

	it('does not count tasks that are only read', async () => {
		const parameters = {
			resource: 'task',
			operation: 'get',
			taskId: 'task-1',
			options: { maxCostUsd: 0.01 },
		};
		expect(await itemOf({ parameters })).toMatchObject({ kind: 'read' });
	});
});

describe('the callback address', () => {
	const completion = 'trigger';
	const url = 'https://n8n.example.com/webhook/abc/callback';
	const trigger = (workflowId = 'workflow') => ({ url, workflowId });
	const registered = (entries: Record<string, ReturnType<typeof trigger>>) => ({
		global: { mediaGenerationTriggers: entries },
	});
	const signed = `${url}?token=${callbackToken('/webhook/abc/callback', API_KEY)}`;

	it('is that of the trigger of this workflow, with its token', async () => {
		const staticData = registered({ a: trigger() });
		const plan = await createOf({ parameters: image({}, { completion }), staticData });
		expect(plan.webhookUrl).toBe(signed);
	});

	it('is the pasted one where there is one', async () => {
		const parameters = image({}, { completion, callbackUrl: ` ${url} ` });
		expect((await createOf({ parameters })).webhookUrl).toBe(signed);
	});

	it.each([
		[['https://n8n.example.com/webhook/x/callback']],
		['https://n8n.example.com/webhook/x/callback'],
	])('is that of an expression, also where it gives a list of one (%j)', async (url) => {
		const parameters = { prompt: 'A', completion: 'trigger', callbackUrl: '={{ $json.url }}' };
		const { webhookUrl } = await createOf({ parameters, items: json({ url }) });
		expect(webhookUrl).toContain('https://n8n.example.com/webhook/x/callback?token=');
	});

	it.each([7, true, { url: 'https://n8n.example.com/webhook/x/callback' }, ['a', 'b']])(
		'is not that of this workflow where an expression gives something else (%j)',
		async (url) => {
			const parameters = { prompt: 'A', completion: 'trigger', callbackUrl: '={{ $json.url }}' };
			const staticData = registered({ a: trigger() });
			const given = { parameters, items: json({ url }), staticData };
			expect(await caught(() => itemOf(given))).toMatchObject({
				message: expect.stringContaining("'Callback URL'") as string,
			});
		},
	);

	it("is to be that of another workflow where n8n's engine v2 runs this one", async () => {
		const staticData = registered({ a: trigger() });
		const settings = { engineType: 'v2' } as const;
		const given = { staticData, settings };
		const error = await caught(
			async () => await createOf({ ...given, parameters: image({}, { completion }) }),
		);
		expect(error.message).toContain('does not work with the engine v2');
		const parameters = image({}, { completion, callbackUrl: url });
		expect((await createOf({ ...given, parameters })).webhookUrl).toBe(signed);
	});

	it.each(['wait', 'return'])('is left out with the completion %s', async (other) => {
		const staticData = registered({ a: trigger() });
		const plan = await createOf({ parameters: image({}, { completion: other }), staticData });
		expect(plan).not.toHaveProperty('webhookUrl');
	});

	it.each([
		['no trigger', registered({}), 'No active Media Generation Trigger'],
		['two triggers', registered({ a: trigger(), b: trigger() }), 'more than one'],
		['a trigger that a copy brought along', registered({ a: trigger('original') }), 'No active'],
	])('cannot be told with %s in the workflow', async (_what, staticData, complaint) => {
		const given = { parameters: image({}, { completion }), staticData };
		expect(await caught(() => createOf(given))).toMatchObject({
			message: expect.stringContaining(complaint),
			description: expect.stringContaining("'Callback URL'"),
		});
	});
});

describe('a completion that this version does not know', () => {
	it.each(['later', 'poll', 'suspend'])(
		'(%s) is refused, and not taken for another',
		async (completion) => {
			const given = { parameters: image({}, { completion }) };
			const { message } = await caught(() => createOf(given));
			expect(message).toContain(`'When to Continue' is '${completion}'`);
		},
	);
});

it('of a suspended run evaluates the address to resume it once, however many items there are', async () => {
	const context = executeContext({
		node: { parameters: { prompt: 'A lighthouse', options: { suspendAfter: 0 } } },
		items: Array.from({ length: 500 }, () => ({ json: {} })),
		credential: { baseUrl: 'https://api.example.com', apiKey: API_KEY },
	});
	const evaluated = jest.spyOn(context, 'evaluateExpression');
	const account = { apiKey: API_KEY, baseUrl: 'https://api.example.com' };
	const { items } = await planRun(context, account, systemClock);
	expect(evaluated.mock.calls).toHaveLength(1);
	const addresses = items.map((item) => 'webhookUrl' in item && item.webhookUrl);
	expect(new Set(addresses)).toEqual(new Set([expect.stringContaining('/callback?') as string]));
});

describe('a large batch', () => {
	/** A clock on which each look takes a millisecond, as if planning an item did. */
	class BusyClock extends FakeClock {
		override now(): number {
			this.pass(1);
			return super.now();
		}
	}

	const plan = async (clock: FakeClock, signal?: AbortSignal) => {
		const context = executeContext({
			node: { parameters: { prompt: 'A lighthouse' } },
			items: Array.from({ length: 200 }, () => ({ json: {} })),
			credential: { baseUrl: 'https://api.example.com', apiKey: API_KEY },
		});
		if (signal) jest.spyOn(context, 'getExecutionCancelSignal').mockReturnValue(signal);
		return await planRun(context, { apiKey: API_KEY, baseUrl: 'https://api.example.com' }, clock);
	};

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
		expect(
			await caught(async () => await plan(new BusyClock(), AbortSignal.abort())),
		).toBeInstanceOf(Stopped);
	});
});
