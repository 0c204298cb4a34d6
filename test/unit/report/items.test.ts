import type { IBinaryData } from 'n8n-workflow';

import {
	taskItems,
	taskJson,
	readOutputOptions,
} from '../../../nodes/MediaGeneration/report/items';
import { parseTaskRecord } from '../../../nodes/MediaGeneration/service/taskRecord';

const URLS = ['https://m/1.png', 'https://m/2.png', 'https://m/3.png'];
const success = (resultUrls: string[] = URLS) =>
	parseTaskRecord('task-1', { state: 'SUCCESS', resultUrls, creditsConsumed: 24 });
const files: IBinaryData[] = ['a', 'b', 'c'].map((data) => ({ data, mimeType: 'image/png' }));
const options = (given: Record<string, unknown> = {}) => readOutputOptions((name) => given[name]);
const paired = { item: 4 };

describe('the fields of a task', () => {
	it('are those of the contract, in its order', () => {
		const task = success();
		expect(Object.entries(taskJson(task, { model: 'a/b', input: { prompt: 'x' } }))).toEqual([
			['taskId', 'task-1'],
			['state', 'SUCCESS'],
			['resultUrls', URLS],
			['creditsConsumed', 24],
			['model', 'a/b'],
			['input', { prompt: 'x' }],
			['record', task.record],
		]);
	});

	it('have a picture that comes back in the record cut short, and results whole', () => {
		const picture = `data:image/png;base64,${'A'.repeat(100_000)}`;
		const record = { state: 'SUCCESS', resultUrls: [picture], input: { image_url: picture } };
		const json = taskJson(parseTaskRecord('t', record));
		expect(json.resultUrls).toEqual([picture]);
		expect(JSON.stringify(json.record).length).toBeLessThan(400);
		expect(record.input.image_url).toBe(picture);
	});

	it.each(['PENDING', 'FAILURE'])('have an empty list of results for %s', (state) => {
		expect(taskJson(parseTaskRecord('t', { state }))).toMatchObject({
			state,
			resultUrls: [],
			creditsConsumed: null,
		});
	});
});

describe('the items of a task', () => {
	const json = { taskId: 'task-1' };

	it.each([true, false])('have the record behind all other fields (split: %s)', (splitResults) => {
		const given = { ...taskJson(success()), estimatedCostUsd: 0.08 };
		const items = taskItems(success(), given, options({ splitResults }), undefined, paired);
		expect(items.map((item) => Object.keys(item.json).at(-1))).toEqual(
			Array(splitResults ? 3 : 1).fill('record'),
		);
	});

	it('are one with all results where they are not split', () => {
		expect(taskItems(success(), json, options(), undefined, paired)).toEqual([
			{ json, pairedItem: paired },
		]);
	});

	it('carry the downloads as data, data_1, data_2', () => {
		const [item] = taskItems(success(), json, options(), files, paired);
		expect(item?.binary).toEqual({ data: files[0], data_1: files[1], data_2: files[2] });
	});

	it('carry them under the name that was chosen', () => {
		const [item] = taskItems(
			success(),
			json,
			options({ outputBinaryField: ' clip ' }),
			files,
			paired,
		);
		expect(Object.keys(item?.binary ?? {})).toEqual(['clip', 'clip_1', 'clip_2']);
	});

	it('are one for each result where they are split, all paired with the same input', () => {
		const items = taskItems(success(), json, options({ splitResults: true }), undefined, paired);
		expect(items).toEqual(
			URLS.map((resultUrl, resultIndex) => ({
				json: { taskId: 'task-1', resultUrl, resultIndex },
				pairedItem: paired,
			})),
		);
	});

	it('that are split carry one file each, all in the same field', () => {
		const items = taskItems(success(), json, options({ splitResults: true }), files, paired);
		expect(items.map(({ binary }) => binary)).toEqual(files.map((data) => ({ data })));
	});

	it.each([true, false])('are one where there is no result (split: %s)', (splitResults) => {
		const items = taskItems(success([]), json, options({ splitResults }), [], paired);
		expect(items.map((item) => item.json)).toEqual([json]);
	});

	it('are one for a failed task', () => {
		const failed = parseTaskRecord('t', { state: 'FAILURE' });
		const items = taskItems(failed, json, options({ splitResults: true }), undefined, paired);
		expect(items).toEqual([{ json, pairedItem: paired }]);
	});

	it('on the trigger are paired with nothing', () => {
		const [item] = taskItems(success(), json, options(), undefined, undefined);
		expect(item).not.toHaveProperty('pairedItem');
	});
});

describe('the options of the output', () => {
	it('are off by default, and the field is data', () => {
		expect(options()).toEqual({ download: false, binaryField: 'data', split: false });
	});

	it.each(['', '  ', undefined, 7])('the field %j means data', (outputBinaryField) => {
		expect(options({ outputBinaryField }).binaryField).toBe('data');
	});
});
