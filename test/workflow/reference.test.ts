import type { IDataObject } from 'n8n-workflow';

import { callbackToken } from '../../nodes/MediaGeneration/callback/callbackToken';
import { register } from '../../nodes/MediaGeneration/callback/triggerUrl';
import { hookContext, TRIGGER, TRIGGER_PATH, type TestNode } from './engine';
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

/** Where the trigger of the same workflow has left its address. */
function withTrigger() {
	const staticData = {};
	register(hookContext({ node: TRIGGER, credential: on.credential, staticData }).hook);
	return { staticData };
}

describe('a reference', () => {
	it.each(['wait', 'trigger', 'return'])(
		'comes out with its task after the input (%s)',
		async (completion) => {
			const { output } = await on.run(order(completion), rows, withTrigger());
			expect(field(output, 'reference')).toEqual(['row 0', 'row 1']);
			const names = Object.keys(output[0]?.json ?? {});
			expect(names[names.indexOf('input') + 1]).toBe('reference');
		},
	);

	it('is waiting with its task while the execution is suspended', async () => {
		on.service.configure({ latencyMs: 60_000 });
		const { run } = await on.run(order('wait', { suspendAfter: 0 }), rows);
		const [waiting] = run.data.executionData?.nodeExecutionStack ?? [];
		expect(field(waiting?.data.main?.[0] ?? [], 'reference')).toEqual(['row 0', 'row 1']);
	});

	it('travels in the address of the trigger, under its token', async () => {
		await on.run(order('trigger'), rows, withTrigger());
		const [task] = on.service.tasks.values();
		const { pathname, searchParams } = new URL(task?.webhookUrl ?? '');
		expect(pathname).toBe(TRIGGER_PATH);
		expect(searchParams.get('reference')).toBe('row 0');
		expect(searchParams.get('token')).toBe(callbackToken(pathname, on.service.apiKey, 'row 0'));
	});

	it('that is left empty changes nothing of the address', async () => {
		await on.run(order('trigger', { reference: '' }), rows, withTrigger());
		const [task] = on.service.tasks.values();
		const { search } = new URL(task?.webhookUrl ?? '');
		expect(search).toBe(`?token=${callbackToken(TRIGGER_PATH, on.service.apiKey)}`);
	});

	it('goes out with an item that failed', async () => {
		on.service.configure({ outcome: 'FAILURE' });
		const node = order('wait', {}, { onError: 'continueRegularOutput' });
		const { output } = await on.run(node, rows);
		expect(field(output, 'reference')).toEqual(['row 0', 'row 1']);
	});

	it('goes out with an item whose task was refused', async () => {
		on.service.configure({ createStatus: 400 });
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
		const { error } = await on.run(order('trigger', { reference }), rows, withTrigger());
		expect(error?.message).toBe(message);
		expect(on.creates).toEqual([]);
	});
});
