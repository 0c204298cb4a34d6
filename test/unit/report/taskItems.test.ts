import type { IBinaryData, IDataObject, IExecuteFunctions } from 'n8n-workflow';

import { missingResults, ofTask } from '../../../nodes/MediaGeneration/report/taskErrors';
import {
	readOutputOptions,
	taskItems,
	taskJson,
} from '../../../nodes/MediaGeneration/report/taskItems';
import { ItemParameters } from '../../../nodes/MediaGeneration/shared/parameters';
import {
	parseTaskRecord,
	type TaskRecord,
} from '../../../nodes/MediaGeneration/service/taskRecord';

const URLS = ['https://m/1.png', 'https://m/2.png', 'https://m/3.png'];
const success = (resultUrls: Array<string | null> = URLS) =>
	parseTaskRecord('task-1', { state: 'SUCCESS', resultUrls, creditsConsumed: 24 });
const files: IBinaryData[] = ['a', 'b', 'c'].map((data) => ({ data, mimeType: 'image/png' }));
const options = (given: IDataObject = {}) =>
	readOutputOptions(
		new ItemParameters({ getNodeParameter: () => given } as unknown as IExecuteFunctions, 0),
		given.downloadResults ?? '',
	);

it.each([
	['downloadResults', 'download'],
	['splitResults', 'split'],
] as const)(
	'%s is asked for by the text true, too, and nothing else is guessed at',
	(name, field) => {
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

	it.each<[string, Given, unknown[]]>([
		['are one with all results where they are not split', [], [{ json }]],
		[
			'carry the downloads under the name that was chosen, numbered from the second on',
			[success(), { outputBinaryField: ' clip ' }, files],
			[{ json, binary: { clip: a, clip_1: b, clip_2: c } }],
		],
		[
			'are one for each result where they are split, all paired with the same input',
			[success(), split],
			URLS.map((resultUrl, resultIndex) => ({ json: { ...json, resultUrl, resultIndex } })),
		],
		[
			'have the places of the service where some of its list are empty',
			[success([URLS[0]!, null, URLS[1]!, '']), split, files.slice(0, 2)],
			[
				{ json: { ...json, resultUrl: URLS[0], resultIndex: 0 }, binary: { data: a } },
				{ json: { ...json, resultUrl: URLS[1], resultIndex: 2 }, binary: { data: b } },
			],
		],
		[
			'that are split carry one file each, all in the same field',
			[success(), split, files],
			URLS.map((resultUrl, resultIndex) => ({
				json: { ...json, resultUrl, resultIndex },
				binary: { data: files[resultIndex] },
			})),
		],
		['are one where there is no result to split', [success([]), split, []], [{ json }]],
		['are one for a failed task', [failed, split], [{ json }]],
	])('%s', (_what, given, items) => {
		expect(itemsOf(...given)).toEqual(
			items.map((item) => ({ ...(item as object), pairedItem: { item: 4 } })),
		);
	});

	it('that are split have the record behind all other fields', () => {
		const items = taskItems(success(), taskJson(success()), { output: options(split) });
		expect(items.map((item) => Object.keys(item.json).at(-1))).toEqual(Array(3).fill('record'));
	});

	it('on the trigger are paired with nothing', () => {
		const [item] = taskItems(success(), json, { output: options() });
		expect(item).not.toHaveProperty('pairedItem');
	});
});

const NO_FIELD = ['', '  '].map((outputBinaryField) => ({ outputBinaryField }));
it.each([{}, ...NO_FIELD])('the output is off by default, and its field is data (%j)', (given) => {
	expect(options(given)).toEqual({ download: false, binaryField: 'data', split: false });
});

it.each([
	[7, "'7'"],
	[['clip'], 'a list'],
])(
	'an output field that is no name is not taken for the default: %j',
	(outputBinaryField, shown) => {
		expect(() => options({ outputBinaryField } as IDataObject)).toThrow(
			`The parameter 'Put Output File in Field' is ${shown}`,
		);
	},
);

it.each([
	[
		'5',
		'The service is not working at the moment (HTTP 500)',
		'The service is not working at the moment \\(HTTP 500\\) \\(task 5\\)$',
	],
	['a', 'The service gave no complete answer', 'The service gave no complete answer \\(task a\\)$'],
	['5', 'The service knows no task 5 for this account (HTTP 404)', 'The service knows no task 5'],
	['5', 'Overloaded (task 5)', 'Overloaded \\(task 5\\)$'],
])('an error of the task %s names it once: %s', (taskId, message, expected) => {
	expect((ofTask(new Error(message), taskId, {}) as Error).message).toMatch(
		new RegExp(`^${expected}`),
	);
});

describe('the warning about missing results', () => {
	it('counts the places of the lists that have no link', () => {
		const tasks = [success([URLS[0]!, null, URLS[1]!, '']), success(), success([null, URLS[2]!])];
		expect(missingResults(tasks)).toBe(
			"3 of 6 results missing: the service's list has places without a link, first in task task-1",
		);
	});

	it('says nothing of whole lists, of empty ones, and of tasks that have no results', () => {
		const failed = parseTaskRecord('t', { state: 'FAILURE' });
		expect(missingResults([success(), success([null, '']), failed, undefined])).toBeUndefined();
	});
});
