import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { BinaryDataService } from 'n8n-core';
import type { INodeExecutionData } from 'n8n-workflow';

import { startWorkflow } from './engine';

jest.setTimeout(120_000);

const MB = 1e6;
const FILE_BYTES = 5 * MB;
const FEW = 5;
const MANY = 50;
const EVERY = 5;

setFlagsFromString('--expose_gc');
const collectGarbage = runInNewContext('gc') as () => void;

const held = () => {
	const { heapUsed, external } = process.memoryUsage();
	return heapUsed + external;
};

/** A service that keeps nothing of what it is sent, and looks at what this process holds each time. */
let server: Server;
let creates: number;
let mostHeld: number;
beforeAll(async () => {
	server = createServer((request, response) => {
		request.resume();
		request.on('end', () => {
			const isCreate = request.method === 'POST';
			const taskId = isCreate ? `task-${++creates}` : (request.url?.split('/').pop() ?? '');
			// To collect garbage takes a second here.
			if (isCreate && creates % EVERY === 0) {
				collectGarbage();
				mostHeld = Math.max(mostHeld, held());
			}
			response.setHeader('content-type', 'application/json');
			response.end(JSON.stringify({ taskId, ...(!isCreate && { state: 'SUCCESS' }) }));
		});
	}).listen(0, '127.0.0.1');
	await once(server, 'listening');
});
afterAll(() => {
	server.closeAllConnections();
	server.close();
});
const { getAsBuffer } = BinaryDataService.prototype;
afterEach(() => {
	BinaryDataService.prototype.getAsBuffer = getAsBuffer;
});
beforeEach(() => {
	creates = 0;
	mostHeld = 0;
});

/** What a batch holds at most above what was held before, in MB. */
async function measure(items: number): Promise<number> {
	const { port } = server.address() as AddressInfo;
	const parameters = {
		prompt: 'A film',
		options: {
			maxInFlight: MANY,
			files: { file: [{ inputField: 'frame', binaryPropertyName: 'data' }] },
		},
	};
	const data = { id: 'filesystem-v2:x', data: 'filesystem-v2', mimeType: 'image/png' };
	const item: INodeExecutionData = {
		json: {},
		binary: { data: { ...data, bytes: FILE_BYTES } },
	};
	collectGarbage();
	const before = held();
	const { result } = startWorkflow({
		node: { parameters },
		items: Array.from({ length: items }, () => item),
		credential: { baseUrl: `http://127.0.0.1:${port}`, apiKey: 'sk-live-x' },
	});
	const { output } = await result;
	expect(output).toHaveLength(items);
	expect(new Set(output.map(({ json }) => json.state))).toEqual(new Set(['SUCCESS']));
	return (mostHeld - before) / MB;
}

it('a batch holds the files of the creates under way, and not those of all items', async () => {
	let reads = 0;
	// Not a spy of jest's, which would keep all that it returns.
	BinaryDataService.prototype.getAsBuffer = async () => {
		reads++;
		return Buffer.alloc(FILE_BYTES, 7);
	};
	const few = await measure(FEW);
	const many = await measure(MANY);
	console.log(
		`${FEW} files of ${FILE_BYTES / MB} MB: ${Math.round(few)} MB at most; ${MANY} files (${(MANY * FILE_BYTES) / MB} MB): ${Math.round(many)} MB`,
	);
	expect(reads).toBe(FEW + MANY);
	// While a task is waited for, nothing of its file is held: the creates under way are few, whatever is in flight.
	expect(many).toBeLessThan((MANY * FILE_BYTES) / MB / 2);
});
