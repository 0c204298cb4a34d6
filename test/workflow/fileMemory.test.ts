import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { BinaryDataService } from 'n8n-core';
import type { INodeExecutionData } from 'n8n-workflow';

import { listen } from '../listen';
import { startWorkflow } from './engine';
import { useProcessedData } from './processedData';
import { passTime, virtualTime } from './time';

jest.setTimeout(120_000);
virtualTime();

const MB = 1e6;
const FILE_BYTES = MB;
const FILES = 20;

setFlagsFromString('--expose_gc');
const collectGarbage = runInNewContext('gc') as () => void;

const held = () => {
	const { heapUsed, external } = process.memoryUsage();
	return heapUsed + external;
};

let created = 0;
/** Reads since all were created. */
let looks = 0;
let heldWaiting: number | undefined;

/** A service that keeps nothing of what it is sent, and looks at what this process holds once all are created. */
let server: Awaited<ReturnType<typeof listen>>;
beforeAll(async () => {
	server = await listen((request, response) => {
		request.resume();
		request.on('end', () => {
			const isCreate = request.method === 'POST';
			const taskId = isCreate ? `task-${++created}` : (request.url?.split('/').pop() ?? '');
			if (!isCreate && created === FILES) looks++;
			// By the second read of a task, the sockets have let go of what was sent through them.
			if (looks > FILES && heldWaiting === undefined) {
				collectGarbage();
				heldWaiting = held();
			}
			const state = heldWaiting === undefined ? 'PENDING' : 'SUCCESS';
			response.setHeader('content-type', 'application/json');
			response.end(JSON.stringify({ taskId, ...(!isCreate && { state }) }));
		});
	});
});
afterAll(async () => await server.close());

useProcessedData();

const { getAsBuffer } = BinaryDataService.prototype;
let reads = 0;
let mostUnderWay = 0;
beforeAll(() => {
	// Not a spy of jest's, which would keep all that it returns.
	BinaryDataService.prototype.getAsBuffer = async () => {
		mostUnderWay = Math.max(mostUnderWay, ++reads - created);
		return Buffer.alloc(FILE_BYTES, 7);
	};
});
afterAll(() => {
	BinaryDataService.prototype.getAsBuffer = getAsBuffer;
});

it('a batch of files reads those of the creates under way, and does not hold all while its tasks are waited for', async () => {
	const files = { file: [{ inputField: 'frame', binaryPropertyName: 'data' }] };
	const parameters = { prompt: 'A film', options: { maxInFlight: FILES, files } };
	const data = { id: 'filesystem-v2:x', data: 'filesystem-v2', mimeType: 'image/png' };
	const item: INodeExecutionData = { json: {}, binary: { data: { ...data, bytes: FILE_BYTES } } };
	collectGarbage();
	const before = held();
	const { result } = startWorkflow({
		node: { parameters },
		items: Array.from({ length: FILES }, () => item),
		credential: { baseUrl: server.url, apiKey: 'sk-live-x' },
	});
	const { output } = await passTime(result);
	expect(output.map(({ json }) => json.state)).toEqual(Array(FILES).fill('SUCCESS'));
	expect(reads).toBe(FILES);
	expect(mostUnderWay).toBeLessThan(10);
	// The transport keeps the last few bodies for a while, five at most, however many there were: as file, as base64
	// and as body. All of the batch would be 75 MB.
	expect(((heldWaiting ?? Infinity) - before) / MB).toBeLessThan(50);
});
