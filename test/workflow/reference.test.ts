import type { IDataObject } from 'n8n-workflow';

import { callbackToken } from '../../nodes/MediaGeneration/callback/callbackToken';
import { TRIGGER, TRIGGER_PATH, type TestNode } from './engine';
import { field, imageNode, prompts, stage } from './support';

const on = stage();

const rows = prompts('a', 'b').map((item, index) => ({
	...item,
	json: { ...item.json, row: `row ${index}` },
}));

/** Orders an image for each row, with the row as its reference. */
const order = (completion: string, options: IDataObject = {}, more: TestNode = {}) =>
	imageNode(
		{ reference: '={{ $json.row }}', ...options },
		{ ...more, parameters: { completion, ...more.parameters } },
	);

describe('a reference', () => {
	it.each(['wait', 'trigger', 'return'])(
		'comes out with its task after the input (%s)',
		async (completion) => {
			const { output } = await on.run(order(completion), rows, { triggers: [TRIGGER] });
			expect(field(output, 'reference')).toEqual(['row 0', 'row 1']);
			const names = Object.keys(output[0]?.json ?? {});
			expect(names[names.indexOf('input') + 1]).toBe('reference');
		},
	);

	it('is waiting with its task while the execution is suspended', async () => {
		on.service.configure({ latencyMs: 60_000 });
		const { waiting } = await on.run(order('wait', { suspendAfter: 0 }), rows);
		expect(field(waiting, 'reference')).toEqual(['row 0', 'row 1']);
	});

	it.each([
		['is under its token', {}, 'row 0'],
		['is not where it is left empty', { reference: '' }, undefined],
	])('in the address of the trigger %s', async (_what, options, reference) => {
		await on.run(order('trigger', options), rows, { triggers: [TRIGGER] });
		const [task] = on.service.tasks.values();
		const { pathname, searchParams } = new URL(task?.webhookUrl ?? '');
		const token = callbackToken(TRIGGER_PATH, on.service.apiKey, reference);
		expect(pathname).toBe(TRIGGER_PATH);
		expect(Object.fromEntries(searchParams)).toEqual({ ...(reference && { reference }), token });
	});

	it.each([
		['failed', { outcome: 'FAILURE' as const }],
		['was refused', { createStatus: 400 }],
	])('goes out with an item whose task %s', async (_what, settings) => {
		on.service.configure(settings);
		const node = order('wait', {}, { onError: 'continueRegularOutput' });
		const { output } = await on.run(node, rows);
		expect(field(output, 'reference')).toEqual(['row 0', 'row 1']);
	});

	it.each([
		[7, '7'],
		['x'.repeat(500), 'x'.repeat(500)],
	])('may be %j', async (reference, text) => {
		const { output } = await on.run(order('return', { reference }), rows.slice(1));
		expect(field(output, 'reference')).toEqual([text]);
	});

	it.each([
		["={{ 'x'.repeat(501) }}", "The parameter 'Your Reference' has 501 characters"],
		['={{ [1, 2] }}', "The parameter 'Your Reference' is not a text"],
	])('%s is refused before a task is created', async (reference, message) => {
		const { error } = await on.run(order('trigger', { reference }), rows, { triggers: [TRIGGER] });
		expect(error?.message).toBe(message);
		expect(on.creates).toEqual([]);
	});
});
