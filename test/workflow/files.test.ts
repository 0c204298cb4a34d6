import { BinaryDataService } from 'n8n-core';
import type { IDataObject, INodeExecutionData } from 'n8n-workflow';

import {
	field,
	filesOption as files,
	hintsOf,
	keepsGoing,
	rawNode as node,
	stage,
} from './support';

const on = stage();

const binary = (text: string | Buffer, mimeType = 'image/png', fileName = 'photo.png') => ({
	data: Buffer.from(text).toString('base64'),
	mimeType,
	fileName,
});
const uri = (text: string, mimeType = 'image/png') =>
	`data:${mimeType};base64,${Buffer.from(text).toString('base64')}`;

const FRAMES: INodeExecutionData = {
	json: {},
	binary: { first: binary('first'), last: binary('last'), sound: binary('beep', 'audio/wav') },
};

let reads: jest.SpyInstance;
beforeEach(() => {
	reads = jest.spyOn(BinaryDataService.prototype, 'getAsBuffer');
});
afterEach(() => reads.mockRestore());

it('reach the service as data URIs, of any type and for any model', async () => {
	const options = files(['first_frame', 'first'], ['last_frame', 'last'], ['sound', 'sound']);
	const { output } = await on.run(node(options), [FRAMES]);
	const input = {
		prompt: 'Waves',
		first_frame: uri('first'),
		last_frame: uri('last'),
		sound: uri('beep', 'audio/wav'),
	};
	expect(on.inputs).toEqual([input]);
	expect(field(output, 'input')).toEqual([input]);
});

it('reach the service beside fields of any name', async () => {
	const fields = { toJSON: 'a', prototype: 'b', style: { constructor: 'c' } };
	const options = { ...files(['frame', 'first']), additionalInput: JSON.stringify(fields) };
	await on.run(node(options), [FRAMES]);
	expect(on.inputs).toEqual([{ prompt: 'Waves', frame: uri('first'), ...fields }]);
});

it.each(['other', '__proto__', 'constructor'])(
	'are missed before anything is sent where the item has no field %s',
	async (name) => {
		const { error } = await on.run(node(files(['frame', name])), [FRAMES]);
		expect(error?.message).toContain(`The item has no binary field '${name}'`);
		expect(on.creates).toEqual([]);
	},
);

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
	const cut = (text: string) => `${text.slice(0, 64)}… (${text.length} characters)`;
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

it('are neither read nor put out where nobody knows whether the task was created', async () => {
	on.service.configure({ createLost: true });
	const large = { json: {}, binary: { a: binary(Buffer.alloc(100_000)) } };
	const { output } = await on.run({ ...node(files(['frame', 'a'])), ...keepsGoing }, [large]);
	expect(JSON.stringify(output).length).toBeLessThan(2000);
	expect(reads).toHaveBeenCalledTimes(1);
	expect(output[0]?.json).toMatchObject({
		error: expect.stringContaining('not known'),
		input: { frame: expect.stringMatching(/^data:image\/png.*characters\)$/) },
	});
});

describe('a dry run', () => {
	const dry = (options: IDataObject = {}, more: IDataObject = {}) =>
		node({ ...files(['frame', 'first']), dryRun: true, pricePerTaskUsd: 0.25, ...options }, more);

	it('shows what each item would send and cost, sends nothing and reads no file', async () => {
		const ran = await on.run(dry(), [FRAMES, FRAMES]);
		const item = {
			model: 'other/video-model',
			input: { prompt: 'Waves', frame: 'data:image/png;base64,… (photo.png, 5 bytes)' },
			estimatedCostUsd: 0.25,
			dryRun: true,
		};
		expect(ran.output).toEqual(
			[0, 1].map((index) => ({ json: item, pairedItem: { item: index } })),
		);
		expect(on.service.requests).toEqual([]);
		expect(reads).not.toHaveBeenCalled();
		expect(hintsOf(ran)).toEqual(['Nothing was sent. 2 tasks would cost 0.5 USD.']);
	});

	it('says of how many tasks the price is not known', async () => {
		const items = [{ json: { price: 0.1 } }, { json: { price: 0 } }];
		const options = { dryRun: true, pricePerTaskUsd: '={{ $json.price }}' };
		expect(hintsOf(await on.run(node(options), items))).toEqual([
			"Nothing was sent. 1 task would cost 0.1 USD. The price of 1 task is not known: enter it in 'Price per Task (USD)'.",
		]);
	});

	it.each([
		['wait', { suspendAfter: 0 }],
		['trigger', {}],
		['return', {}],
	])('is the same with the completion %s %j', async (completion, options) => {
		const more = { completion, callbackUrl: 'https://n8n.example.com/webhook/a/callback' };
		const { output, run } = await on.run(dry(options, more), [FRAMES]);
		expect(field(output, 'dryRun')).toEqual([true]);
		expect(run.waitTill).toBeFalsy();
		expect(on.service.requests).toEqual([]);
	});

	it('refuses what a real run would refuse, and says that the budget would', async () => {
		const tooDear = await on.run(dry({ maxCostUsd: 0.4 }), [FRAMES, FRAMES]);
		expect(field(tooDear.output, 'dryRun')).toEqual([true, true]);
		const [warning] = hintsOf(tooDear);
		expect(warning).toContain('This batch would be refused: 2 tasks would cost 0.5 USD');
		const noFile = await on.run(dry(), [FRAMES, { json: {} }]);
		expect(noFile.error?.message).toContain('first');
		const noTrigger = await on.run(dry({}, { completion: 'trigger' }), [FRAMES]);
		expect(noTrigger.error?.message).toContain('No active Media Generation Trigger');
		expect(on.service.requests).toEqual([]);
	});

	it('lets an item that would be refused out, where the node continues', async () => {
		const { output } = await on.run({ ...dry(), ...keepsGoing }, [FRAMES, { json: {} }]);
		expect(output).toMatchObject([
			{ json: { dryRun: true }, pairedItem: { item: 0 } },
			{ json: { error: expect.stringContaining('first') }, pairedItem: { item: 1 } },
		]);
	});

	it('puts nothing into the journal', async () => {
		const { run } = await on.run(dry(), [FRAMES]);
		expect(JSON.stringify(run.data.executionData?.contextData ?? {})).not.toContain('digest');
	});
});

it.each([undefined, 0])(
	'are nowhere kept with what waits (suspended after %s minutes), though the service repeats them in its answers',
	async (suspendAfter) => {
		on.service.configure({ createShape: 'record', latencyMs: 600_000 });
		const photo = 'a'.repeat(9000);
		const items = [{ json: {}, binary: { data: binary(photo) } }];
		const workflow = on.workflow(node({ ...files(['frame', 'data']), suspendAfter }), items);
		const { run, handed } = await on.stopWhen(() => on.requests('GET').length > 0, workflow);
		const { contextData } = run.data.executionData ?? {};
		const text = JSON.stringify([contextData, handed]);
		expect(text).toContain('data:image/png;base64,YWFh');
		expect(text.length).toBeLessThan(4000);
	},
);
