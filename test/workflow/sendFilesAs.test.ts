import { createHmac } from 'node:crypto';
import { BinaryDataService } from 'n8n-core';
import type { IBinaryData, IDataObject, INodeExecutionData } from 'n8n-workflow';

import { SERVICE, startWorkflow } from './engine';
import { hostData } from './host';
import { descriptionOf, filesOption, rawNode, stage } from './support';
import { passTime } from './time';

const on = stage();

const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');

/** A token as n8n makes it. */
const tokenOf = ({ id }: IBinaryData, expiresIn = 'never') => {
	const body = `${part({ alg: 'HS256', typ: 'JWT' })}.${part({ id, expiresIn })}`;
	return `${body}.${createHmac('sha256', 'secret').update(body).digest('base64url')}`;
};

/** A file that n8n keeps outside of memory. */
const stored = (name: string): IBinaryData => ({
	id: `filesystem-v2:${name}`,
	data: 'filesystem-v2',
	mimeType: 'image/png',
	fileName: `${name}.png`,
	bytes: 17,
});
const item: INodeExecutionData = {
	json: {},
	binary: { first: stored('first'), last: stored('last') },
};
const link = (name: string, expiresIn: string) =>
	`https://n8n.test/rest/binary-data/signed?token=${tokenOf(stored(name), expiresIn)}`;
const SHORT = 'data:image/png;base64,… (first.png, 17 bytes)';

const node = (options: IDataObject = {}, more?: IDataObject) =>
	rawNode({ ...filesOption(['first_frame', 'first']), sendFilesAs: 'link', ...options }, more);

let sign: jest.SpyInstance;
let reads: jest.SpyInstance;
beforeEach(() => {
	sign = jest.spyOn(BinaryDataService.prototype, 'createSignedToken').mockImplementation(tokenOf);
	reads = jest.spyOn(BinaryDataService.prototype, 'getAsBuffer');
});
afterEach(() => jest.restoreAllMocks());

describe('files as links', () => {
	it('reach the service as addresses that n8n signs, and none is read', async () => {
		const { error } = await on.run(node(), [item]);
		expect(error).toBeUndefined();
		expect(on.inputs).toEqual([{ prompt: 'Waves', first_frame: link('first', '86400s') }]);
		expect(reads).not.toHaveBeenCalled();
	});

	it.each([
		['with the time of the wait', {}, { timeout: 90 }, '90s'],
		['with the whole second', {}, { timeout: 1.5 }, '2s'],
		['after ten minutes with a wait that is held', {}, { splitResults: true }, '600s'],
		['after a day where nobody waits', { completion: 'return' }, {}, '86400s'],
	])('end %s', async (_when, more, options, expiresIn) => {
		await on.run(node(options, more), [item]);
		expect(on.inputs).toEqual([{ prompt: 'Waves', first_frame: link('first', expiresIn) }]);
	});

	it('are signed anew for a create that is sent again', async () => {
		on.service.configure({ createStatus: { status: 429, times: 2, retryAfter: 1 } });
		await on.run(node(), [item]);
		// Each time it is sent, and once before, to see whether n8n can.
		expect(sign).toHaveBeenCalledTimes(4);
		expect(on.taskIds).toHaveLength(1);
	});

	it('may be lists, fields of the item, and the reference picture of a video', async () => {
		const assignments = [{ name: 'last_frame', type: 'binary', value: '={{ $binary.last }}' }];
		const options = { files: {}, additionalFields: { assignments } };
		const video = {
			resource: 'video',
			operation: 'generate',
			model: 'videovendor/video-model-2-mini',
			prompt: 'Waves',
			imageSource: 'binary',
			binaryPropertyName: 'first,last',
		};
		await on.run(node(options, video), [item]);
		const [first, last] = [link('first', '86400s'), link('last', '86400s')];
		expect(on.inputs).toEqual([{ prompt: 'Waves', image_url: [first, last], last_frame: last }]);
	});

	it('leave their tokens nowhere, also where the record repeats them', async () => {
		on.service.configure({ createShape: 'record' });
		const failed = { outcome: 'FAILURE' as const, failureMessage: link('first', '86400s') };
		const all = node({ suspendAfter: 0 });
		const ran = await on.run(all, [item]);
		on.service.configure({ createStatus: { status: 400, times: 1, body: link('first', '7s') } });
		const refused = await on.run(node(), [item]);
		on.service.configure(failed);
		const unlucky = await on.run(node(), [item]);
		const [token = ''] = tokenOf(stored('first')).split('.', 1);
		expect(token).toMatch(/^eyJ/);
		for (const { run, error } of [ran, refused, unlucky]) {
			const text = JSON.stringify([run.data, error?.message, error]);
			expect(text).toContain('first.png');
			expect(text).not.toContain(token);
		}
		expect(JSON.stringify(on.inputs)).toContain(token);
	});

	it('show in the output as data does: which file it was', async () => {
		const { output } = await on.run(node(), [item]);
		expect(output[0]?.json).toMatchObject({
			input: { prompt: 'Waves', first_frame: SHORT },
			record: { input: { first_frame: 'https://n8n.test/rest/binary-data/signed?token=***' } },
		});
		expect(output[0]?.json.record).not.toHaveProperty('token');
	});

	it('of a dry run are checked, and not sent', async () => {
		const { output } = await on.run(node({ dryRun: true }), [item]);
		expect(output[0]?.json).toMatchObject({ input: { first_frame: SHORT }, dryRun: true });
		expect(on.creates).toHaveLength(0);
	});
});

describe('links are refused before a task is created', () => {
	const refusal = async (
		test: Partial<Parameters<typeof startWorkflow>[0]> = {},
		options: IDataObject = {},
		more: Parameters<typeof startWorkflow>[2] = {},
	) => {
		const workflow = { ...on.workflow(node(options), [item]), ...test };
		const ran = await passTime(startWorkflow(workflow, 'trigger', more).result);
		expect(on.requests('POST')).toEqual([]);
		expect(descriptionOf(ran)).toMatch(/'Data'/);
		return `${ran.error?.message} ${descriptionOf(ran)}`;
	};

	it('where n8n keeps files in memory', async () => {
		const first = { ...stored('first'), id: undefined, data: 'AAAA' };
		const text = await refusal({ items: [{ json: {}, binary: { first } }] });
		expect(text).toContain("'Send Files As' is 'Links', but n8n keeps the file 'first' in memory");
		expect(text).toContain('N8N_DEFAULT_BINARY_DATA_MODE');
		expect(text).toContain("or choose 'Data' in 'Send Files As'. No task was created.");
	});

	it('where the service cannot reach n8n, as far as it shows', async () => {
		const more = { ...hostData('1', 'trigger'), restApiUrl: 'http://localhost:5678/rest' };
		const credential = { ...on.credential, baseUrl: SERVICE };
		const text = await refusal({ credential }, {}, more);
		expect(text).toContain("the service cannot reach n8n at 'http://localhost:5678'");
		expect(text).toContain('N8N_EDITOR_BASE_URL');
		expect(text).not.toContain('eyJ');
	});

	it('where n8n cannot make them', async () => {
		sign.mockImplementation(() => {
			throw new Error('no secret');
		});
		expect(await refusal()).toContain("n8n makes no link of the file 'first': no secret");
	});

	it('where the value is none of the list', async () => {
		const text = await refusal({}, { sendFilesAs: 'url' });
		expect(text).toContain("The parameter 'Send Files As' is 'url'");
	});
});

it('without files the option asks for nothing', async () => {
	const { error } = await on.run(node({ files: {} }), [item]);
	expect(error).toBeUndefined();
	expect(sign).not.toHaveBeenCalled();
});
