import type { IBinaryData, IDataObject, IExecuteFunctions } from 'n8n-workflow';

import { echo } from '../../../nodes/MediaGeneration/plan/inputFile';
import { missingResults, timedOut } from '../../../nodes/MediaGeneration/report/taskErrors';
import {
	furtherFields,
	pendingJson,
	readOutputOptions,
	taskItems,
	taskJson,
} from '../../../nodes/MediaGeneration/report/taskItems';
import {
	parseTaskRecord,
	type TaskRecord,
} from '../../../nodes/MediaGeneration/service/taskRecord';
import { ItemParameters } from '../../../nodes/MediaGeneration/shared/parameters';

const places = ['https://m/1.png', null, 'https://m/2.png', ''];
const URLS = ['https://m/1.png', 'https://m/2.png', 'https://m/3.png'];
const success = (resultUrls: Array<string | null> = URLS) =>
	parseTaskRecord('task-1', { state: 'SUCCESS', resultUrls, creditsConsumed: 24 });
const files: IBinaryData[] = ['a', 'b', 'c'].map((data) => ({ data, mimeType: 'image/png' }));
const options = (given: IDataObject = {}) => {
	const context = {
		getNodeParameter: (name: string) => (name === 'options' ? given : (given[name] ?? '')),
		isToolExecution: () => false,
		getNode: () => ({}),
	};
	return readOutputOptions(new ItemParameters(context as unknown as IExecuteFunctions, 0));
};

it.each(['download', 'split'] as const)(
	'the text true asks to %s, nothing else is guessed',
	(field) => {
		const name = `${field}Results`;
		const given = ['true', true, 'false', '', undefined];
		const asked = given.map((value) => options({ [name]: value })[field]);
		expect(asked).toEqual([true, true, false, false, false]);
		expect(() => options({ [name]: 'TRUE' })).toThrow("Results' is 'TRUE'");
	},
);

describe('the items of a task', () => {
	const json = { taskId: 'task-1' };
	type Given = [task?: TaskRecord, options?: IDataObject, downloads?: IBinaryData[]];
	const itemsOf = (...[task = success(), given, downloads]: Given) =>
		taskItems(task, json, { output: options(given), itemIndex: 4 }, downloads);
	const failed = parseTaskRecord('t', { state: 'FAILURE' });
	const split = { splitResults: true };
	const [a, b, c] = files;

	const resultOf = (place: number, resultUrl: string, binary?: object) => ({
		json: { ...json, resultUrl, resultIndex: place },
		...binary,
	});
	it.each<[string, Given, unknown[]]>([
		['are one with all results where they are not split', [], [{ json }]],
		[
			'carry the downloads under the chosen name, numbered from the second on',
			[success(), { outputBinaryField: ' clip ' }, files],
			[{ json, binary: { clip: a, clip_1: b, clip_2: c } }],
		],
		[
			'are one for each result, if split',
			[success(), split],
			URLS.map((url, at) => resultOf(at, url)),
		],
		[
			'have the places of the service where some of its list are empty',
			[success(places), split, files.slice(0, 2)],
			[
				resultOf(0, URLS[0]!, { binary: { data: a } }),
				resultOf(2, URLS[1]!, { binary: { data: b } }),
			],
		],
		['are one where there is no result to split', [success([]), split, []], [{ json }]],
		['are one for a failed task', [failed, split], [{ json }]],
	])('%s', (_what, given, items) => {
		expect(itemsOf(...given)).toEqual(
			items.map((item) => ({ ...(item as object), pairedItem: { item: 4 } })),
		);
	});

	it('that are split have the record behind all other fields', () => {
		const more = { output: options(split), itemIndex: 0 };
		const items = taskItems(success(), taskJson(success()), more);
		expect(items.map((item) => Object.keys(item.json).at(-1))).toEqual(Array(3).fill('record'));
	});
});

const NO_FIELD = ['', '  '].map((outputBinaryField) => ({ outputBinaryField }));
it.each([{}, ...NO_FIELD])('the output is off by default, and its field is data (%j)', (given) => {
	expect(options(given)).toEqual({ download: false, binaryField: 'data', split: false });
});

it.each([
	[7, "'7'"],
	[['clip'], 'a list'],
])('an output field that is no name is not taken for the default: %j', (field, shown) => {
	const given = { outputBinaryField: field } as IDataObject;
	const message = `The parameter 'Name of File Field' is ${shown}`;
	expect(() => options(given)).toThrow(message);
});

describe('the warning about missing results', () => {
	it('counts the places of the lists that have no link', () => {
		const tasks = [success(places), success(), success([null, URLS[2]!])];
		expect(missingResults(tasks)).toBe(
			"3 of 6 results missing: the service's list has places without a link, first in task task-1",
		);
	});

	it('says nothing of whole lists, of empty ones, and of tasks that have no results', () => {
		const failed = parseTaskRecord('t', { state: 'FAILURE' });
		expect(missingResults([success(), success([null, '']), failed, undefined])).toBeUndefined();
	});
});

const RESULT_URL = 'https://m.example.com/1.png';
const FIELDS = { taskId: 'task-1', state: 'SUCCESS', resultUrls: [RESULT_URL], creditsConsumed: 8 };
const TIMES = { createdAt: '2026-01-01', width: 1024 };

describe('the record of an item', () => {
	it.each<[string, Record<string, unknown>]>([
		['at the top', { ...FIELDS, ...TIMES }],
		['spelt otherwise', { task_id: 'TASK-1', State: 'success', credits_consumed: '8', ...TIMES }],
		['by the bare id', { id: 'task-1', result_urls: [RESULT_URL], ...TIMES }],
		['as nothing', { ...FIELDS, creditsConsumed: null, resultUrls: null, ...TIMES }],
	])('does not repeat what the item says: %s', (_where, record) => {
		expect(furtherFields(record as never, FIELDS)).toEqual(TIMES);
	});

	it('does not repeat it inside a wrapper either, and leaves no empty wrapper', () => {
		const wrapped = { code: 200, data: { ...FIELDS, prompt: 'A sea' }, task: { id: 'task-1' } };
		expect(furtherFields(wrapped, FIELDS)).toEqual({ code: 200, data: { prompt: 'A sea' } });
	});

	it.each([
		['in another order', { model: 'a/b', input: { seed: 7, prompt: 'A', sizes: [1, 2] } }, []],
		['with a default', { input: { prompt: 'A', sizes: [1, 2], seed: 7, steps: 20 } }, ['input']],
		['without a field', { input: { prompt: 'A', seed: 7 } }, ['input']],
		['with another order of a list', { input: { prompt: 'A', sizes: [2, 1], seed: 7 } }, ['input']],
		['of another model', { model: 'a/b-2' }, ['model']],
	])('does not repeat the model and the input as they were sent: %s', (_what, echo, left) => {
		const sent = { model: 'a/b', input: { prompt: 'A', sizes: [1, 2], seed: 7 } };
		const record = { taskId: 'task-1', state: 'SUCCESS', width: 1024, ...echo };
		const { record: rest } = taskJson(parseTaskRecord('task-1', record), sent);
		expect(Object.keys(rest as object)).toEqual([...left, 'width']);
	});

	it('does not repeat a picture that was sent, which the item shows cut short', () => {
		const picture = `data:image/png;base64,${'A'.repeat(5_000)}`;
		const sent = echo({ model: 'a/b', input: { image_url: picture } });
		const record = { state: 'SUCCESS', input: { image_url: picture } };
		expect(taskJson(parseTaskRecord('task-1', record), sent).record).toEqual({});
	});

	it('keeps what the item says otherwise', () => {
		const record = {
			id: 'event-7',
			state: 'RUNNING',
			resultUrls: [RESULT_URL],
			creditsConsumed: 3,
		};
		const pending = { taskId: 'task-1', state: 'PENDING', resultUrls: [], creditsConsumed: null };
		expect(furtherFields(record, pending)).toEqual(record);
	});

	it('keeps links that say more than their address, cut short where they are whole files', () => {
		const resultUrls = [{ url: RESULT_URL, width: 1024 }];
		expect(furtherFields({ resultUrls }, FIELDS)).toEqual({ resultUrls });
		const picture = `data:image/png;base64,${'A'.repeat(5_000)}`;
		const whole = furtherFields({ resultUrls: [{ url: picture, width: 1024 }] }, FIELDS);
		expect(JSON.stringify(whole).length).toBeLessThan(200);
	});

	it('begins with the prompt metadata', () => {
		const record = { createdAt: 1, model: 'a/b', input: {}, revised_prompt: 'A', prompt: 'B' };
		const names = Object.keys(furtherFields({ ...FIELDS, ...record }, FIELDS));
		expect(names).toEqual(['revised_prompt', 'prompt', 'model', 'input', 'createdAt']);
		const wrapped = { code: 200, message: 'ok', data: { prompt: 'B' } };
		expect(Object.keys(furtherFields(wrapped, FIELDS))).toEqual(['data', 'code', 'message']);
	});

	it('of a task that was only created is the rest of the answer to the create', () => {
		const record = { taskId: 'task-1', state: 'PENDING', queue: 3 };
		expect(pendingJson('task-1', { record }).record).toEqual({ queue: 3 });
	});
});

describe('the credits of a task that is not finished', () => {
	const charged = { taskId: 'task-1', state: 'PENDING', creditsConsumed: 4 };

	it.each([charged, { data: charged }, { data: { ...charged, creditsConsumed: '4' } }])(
		'are those of the answer to its create: %j',
		(record) => {
			const json = pendingJson('task-1', { record });
			expect(json).toMatchObject({ creditsConsumed: 4 });
			expect(json.record).toEqual({});
		},
	);

	it.each([
		[charged, 4],
		[{ state: 'PENDING' }, 3],
	])('are those of the last record when its time is up: %j', (record, credits) => {
		const known = pendingJson('task-1', { record: { creditsConsumed: 3 } });
		const last = parseTaskRecord('task-1', record);
		const { task } = timedOut(1000, { last }, known);
		expect(task).toMatchObject({ creditsConsumed: credits });
		expect(task.record).toEqual({});
	});
});

it.each([
	['FAILURE', {}, 0],
	['FAILURE', { creditsConsumed: null }, 0],
	['FAILURE', { creditsConsumed: 8 }, 8],
	['SUCCESS', {}, null],
])(
	'%s %j has cost %j: a failed task nothing unless the service says otherwise',
	(state, more, credits) => {
		const task = parseTaskRecord('task-1', { taskId: 'task-1', state, ...more });
		expect(taskJson(task).creditsConsumed).toBe(credits);
	},
);
