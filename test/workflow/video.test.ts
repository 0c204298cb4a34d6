import type { IDataObject, INodeExecutionData } from 'n8n-workflow';

import { field, stage, VIDEO_MODEL } from './support';

const on = stage();

const PNG = Buffer.from('iVBORw0KGgo=', 'base64');
const picture = (data: Buffer = PNG, mimeType = 'image/png'): INodeExecutionData => ({
	json: {},
	binary: { data: { data: data.toString('base64'), mimeType } },
});

const videoNode = (parameters: IDataObject) => ({
	parameters: { resource: 'video', operation: 'generate', prompt: 'Waves', ...parameters },
});

/** The inputs that reached the service. */
const inputs = () => [...on.service.tasks.values()].map(({ record }) => record.input);

it('starts from a picture at an address', async () => {
	const { output } = await on.run(
		videoNode({ imageUrl: 'https://m.example.com/1.png', durationSeconds: 5 }),
	);
	const input = { prompt: 'Waves', duration: 5, image_url: 'https://m.example.com/1.png' };
	expect(inputs()).toEqual([input]);
	expect(output[0]?.json).toMatchObject({
		state: 'SUCCESS',
		model: VIDEO_MODEL,
		input,
		estimatedCostUsd: 0.5125,
	});
});

it('starts from the prompt alone', async () => {
	await on.run(videoNode({ imageSource: 'none' }));
	expect(inputs()).toEqual([{ prompt: 'Waves' }]);
});

it('starts from a picture that the item carries, sent as a data URI', async () => {
	await on.run(videoNode({ imageSource: 'binary' }), [picture(), picture(Buffer.from('other'))]);
	expect(inputs()).toEqual([
		{ prompt: 'Waves', image_url: `data:image/png;base64,${PNG.toString('base64')}` },
		{ prompt: 'Waves', image_url: 'data:image/png;base64,b3RoZXI=' },
	]);
});

it('sends a large picture whole, and shows only its beginning in the output', async () => {
	const large = Buffer.alloc(100_000, 7);
	const { output } = await on.run(videoNode({ imageSource: 'binary' }), [picture(large)]);
	const uri = `data:image/png;base64,${large.toString('base64')}`;
	expect(inputs()).toMatchObject([{ image_url: uri }]);
	expect(output[0]?.json.input).toEqual({
		prompt: 'Waves',
		image_url: `${uri.slice(0, 64)}… (${uri.length} characters)`,
	});
});

it('puts picture and duration into the fields that the options name', async () => {
	await on.run(
		videoNode({
			imageUrl: 'https://m.example.com/1.png',
			durationSeconds: 5,
			options: { imageField: 'first_frame', durationField: 'seconds' },
		}),
	);
	expect(inputs()).toEqual([
		{ prompt: 'Waves', seconds: 5, first_frame: 'https://m.example.com/1.png' },
	]);
});

it('takes its prompt and its picture from each item', async () => {
	const { output } = await on.run(
		videoNode({ prompt: '={{ $json.text }}', imageUrl: '={{ $json.url }}' }),
		['a', 'b'].map((text) => ({ json: { text, url: `https://m.example.com/${text}.png` } })),
	);
	expect(field(output, 'input')).toEqual([
		{ prompt: 'a', image_url: 'https://m.example.com/a.png' },
		{ prompt: 'b', image_url: 'https://m.example.com/b.png' },
	]);
});

it.each([
	['carries no picture', [{ json: {} }], /data/],
	[
		'carries a text',
		[picture(Buffer.from('text'), 'text/plain')],
		/'text\/plain' and not a picture/,
	],
])('creates nothing where the item %s', async (_what, items, message) => {
	const { error } = await on.run(videoNode({ imageSource: 'binary' }), items);
	expect(error?.message).toMatch(message);
	expect(on.creates).toEqual([]);
});

it('is refused as a whole above the budget', async () => {
	const items = Array.from({ length: 4 }, () => ({ json: {} }));
	const { error } = await on.run(
		videoNode({ imageSource: 'none', durationSeconds: 10, options: { maxCostUsd: 4 } }),
		items,
	);
	expect(error?.message).toBe('4 tasks would cost 4.1 USD, which is above the limit of 4 USD');
	expect(on.creates).toEqual([]);
});
