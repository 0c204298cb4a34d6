import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { BinaryDataService } from 'n8n-core';
import type { INodeExecutionData } from 'n8n-workflow';

import { listen } from '../listen';
import { startWorkflow } from './engine';
import { passTime, virtualTime } from './time';

jest.setTimeout(120_000);
virtualTime();

const MB = 1e6;
const FILE_BYTES = 5 * MB;
const FEW = 5;
const MANY = 50;

setFlagsFromString('--expose_gc');
const collectGarbage = runInNewContext('gc') as () => void;

const held = () => {
	const { heapUsed, external } = process.memoryUsage();
	return heapUsed + external;
};

/** A service that keeps nothing of what it is sent, and looks at what this process holds once all are created. */
let server: Awaited<ReturnType<typeof listen>>;
let items: number;
let created: number;
/** Reads since all were created. */
let looks: number;
let heldWaiting: number | undefined;
beforeAll(async () => {
	server = await listen((request, response) => {
		request.resume();
		request.on('end', () => {
			const isCreate = request.method === 'POST';
			const taskId = isCreate ? `task-${++created}` : (request.url?.split('/').pop() ?? '');
			if (!isCreate && created === items) looks++;
			// By the second read of a task, the sockets have let go of what was sent through them.
			if (looks > items && heldWaiting === undefined) {
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
const { getAsBuffer } = BinaryDataService.prototype;
let reads: number;
let mostUnderWay: number;
beforeEach(() => {
	reads = 0;
	mostUnderWay = 0;
	created = 0;
	looks = 0;
	heldWaiting = undefined;
	// Not a spy of jest's, which would keep all that it returns.
	BinaryDataService.prototype.getAsBuffer = async () => {
		mostUnderWay = Math.max(mostUnderWay, ++reads - created);
		return Buffer.alloc(FILE_BYTES, 7);
	};
});
afterEach(() => {
	BinaryDataService.prototype.getAsBuffer = getAsBuffer;
});

it.each([FEW, MANY])(
	'a batch of %i files reads those of the creates under way, and does not hold all while its tasks are waited for',
	async (count) => {
		items = count;
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
			items: Array.from({ length: count }, () => item),
			credential: { baseUrl: server.url, apiKey: 'sk-live-x' },
		});
		const { output } = await passTime(result);
		expect(output).toHaveLength(count);
		expect(new Set(output.map(({ json }) => json.state))).toEqual(new Set(['SUCCESS']));
		const waiting = ((heldWaiting ?? Infinity) - before) / MB;
		console.log(
			`${count} files of ${FILE_BYTES / MB} MB: ${mostUnderWay} creates under way at most, ${waiting.toFixed(1)} MB held while all are waited for`,
		);
		expect(reads).toBe(count);
		expect(mostUnderWay).toBeLessThan(10);
		// The transport keeps the last few bodies for a while, five at most, however many there were: as file, as base64
		// and as body. All of the large batch would be 900 MB.
		expect(waiting).toBeLessThan(125);
	},
);
