import type { IDataObject, INodeExecutionData } from 'n8n-workflow';

import { stage, VIDEO_MODEL } from './support';

const on = stage();

const URL = 'https://m.example.com/1.png';
const PNG = Buffer.from('iVBORw0KGgo=', 'base64');
const picture = (data: Buffer = PNG, mimeType = 'image/png'): INodeExecutionData => ({
	json: {},
	binary: { data: { data: data.toString('base64'), mimeType } },
});
const uri = (data: Buffer) => `data:image/png;base64,${data.toString('base64')}`;

const videoOf = async (parameters: IDataObject, items?: INodeExecutionData[]) =>
	await on.run(
		{ parameters: { resource: 'video', operation: 'generate', prompt: 'Waves', ...parameters } },
		items,
	);

it('starts from a picture at an address', async () => {
	const { output } = await videoOf({ imageUrl: URL, durationSeconds: 5 });
	const input = { prompt: 'Waves', duration: 5, image_url: URL };
	expect(on.inputs).toEqual([input]);
	expect(output[0]?.json).toMatchObject({
		state: 'SUCCESS',
		model: VIDEO_MODEL,
		input,
		estimatedCostUsd: 0.5125,
	});
});

it('puts the picture and the duration where the names of their fields lead, and knows the price by that', async () => {
	const fields = { imageField: 'frames[0].url', durationField: 'settings.seconds' };
	const set = { assignments: [{ name: 'settings.seconds', type: 'number', value: 10 }] };
	const video = { imageUrl: URL, durationSeconds: 5 };
	await videoOf({ ...video, options: fields });
	const { output } = await videoOf({ ...video, options: { ...fields, additionalFields: set } });
	const input = { prompt: 'Waves', frames: [{ url: URL }] };
	const inputs = [5, 10].map((seconds) => ({ ...input, settings: { seconds } }));
	expect(on.inputs).toEqual(inputs);
	expect(output[0]?.json.estimatedCostUsd).toBe(1.025);
});

it('starts from a picture that the item carries, sent as a data URI', async () => {
	const other = Buffer.from('other');
	await videoOf({ imageSource: 'binary' }, [picture(), picture(other)]);
	const urls = [uri(PNG), uri(other)];
	expect(on.inputs).toEqual(urls.map((image_url) => ({ prompt: 'Waves', image_url })));
});

it('sends a large picture whole, and shows only its beginning in the output', async () => {
	const large = Buffer.alloc(100_000, 7);
	const { output } = await videoOf({ imageSource: 'binary' }, [picture(large)]);
	expect(on.inputs).toMatchObject([{ image_url: uri(large) }]);
	const image_url = `${uri(large).slice(0, 64)}… (${uri(large).length} characters)`;
	expect(output[0]?.json.input).toEqual({ prompt: 'Waves', image_url });
});
