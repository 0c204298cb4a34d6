import type { IDataObject, IExecuteFunctions, INodeExecutionData } from 'n8n-workflow';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

import { runTasks } from '../../nodes/MediaGeneration/run/actionRun';
import { IMAGE_MODEL } from '../../nodes/MediaGeneration/service/prices';
import type { Clock } from '../../nodes/MediaGeneration/shared/clock';
import type { BenchOptions } from './options';
import { type Row, sampleOf } from './results';

const SIZES = [10_000, 100_000, 1_000_000];
const QUICK_SIZES = [1_000, 10_000];

const MAX_IN_FLIGHT = 500;
const KIB = 1024;

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

function usedBytes(): number {
	collectGarbage();
	collectGarbage();
	return process.memoryUsage().heapUsed;
}

/**
 * The node alone, up to a million tasks in one run: n8n's helpers answer at once, and waits take no time. So all that
 * is measured is this package's own, and shows whether it grows with the number of tasks, or faster.
 */
export async function measureGrowth(
	{ quick }: BenchOptions,
	log: (line: string) => void,
): Promise<Row[]> {
	const rows: Row[] = [];
	for (const size of quick ? QUICK_SIZES : SIZES) {
		for (const completion of ['wait', 'return'] as const) {
			const measured = await measure(size, completion);
			log(`${size} tasks, ${completion}: ${JSON.stringify(measured)}`);
			const row = (id: string, what: string, unit: string, value: number): Row => ({
				id: `growth-${completion}-${size}-${id}`,
				what: `${size.toLocaleString('en')} tasks: ${what}, ${completion === 'wait' ? 'Wait for Results' : 'Return Immediately'}`,
				unit,
				ours: sampleOf([value]),
			});
			rows.push(
				row('cpu', 'CPU a task', 'ms', measured.cpuMsEach),
				row('own', 'memory a task, beside its items', 'KiB', measured.ownKibEach),
				row('items', 'memory a task, its item that comes out', 'KiB', measured.itemKibEach),
			);
		}
	}
	return rows;
}

interface Measured {
	cpuMsEach: number;
	/** At the end of the run, where most is held: above what the items take, KiB. */
	ownKibEach: number;
	itemKibEach: number;
}

async function measure(size: number, completion: 'wait' | 'return'): Promise<Measured> {
	const items = Array.from({ length: size }, (_, index) => ({
		json: { prompt: `Prompt ${index}` },
	}));
	const clock = new IdleClock();
	const before = usedBytes();
	let most = before;
	const cpu = process.cpuUsage();
	let answered = 0;
	const last = completion === 'wait' ? 2 * size : size;
	const context = contextOf(items, completion, () => {
		answered++;
		// With the last answer, all is held that will be.
		if (answered === last) most = usedBytes();
	});
	const output = await runTasks(context, clock);
	if (output.length !== size) throw new Error(`Of ${size} items ${output.length} came out.`);
	const { user, system } = process.cpuUsage(cpu);
	const behind = usedBytes();
	// What came out must be held until here.
	if (output[size - 1]?.json.taskId === undefined)
		throw new Error('An item came out without its task.');
	const itemKibEach = (behind - before) / KIB / size;
	return {
		cpuMsEach: (user + system) / 1000 / size,
		ownKibEach: (most - before) / KIB / size - itemKibEach,
		itemKibEach,
	};
}

/** A clock that jumps to the next moment as soon as nothing else is to be done. */
class IdleClock implements Clock {
	private time = 0;

	private readonly due = new Map<number, Array<() => void>>();

	private isTicking = false;

	now(): number {
		return this.time;
	}

	async sleep(ms: number): Promise<void> {
		const at = this.time + Math.max(0, ms);
		await new Promise<void>((resolve) => {
			const others = this.due.get(at);
			if (others) others.push(resolve);
			else this.due.set(at, [resolve]);
			this.tick();
		});
	}

	private tick(): void {
		if (this.isTicking) return;
		this.isTicking = true;
		setImmediate(() => {
			this.isTicking = false;
			const at = Math.min(...this.due.keys());
			this.time = Math.max(this.time, at);
			const ready = this.due.get(at) ?? [];
			this.due.delete(at);
			for (const wake of ready) wake();
			if (this.due.size > 0) this.tick();
		});
	}
}

/** What the node asks n8n for, answered at once. */
function contextOf(
	items: INodeExecutionData[],
	completion: string,
	onAnswer: () => void,
): IExecuteFunctions {
	const parameters: IDataObject = {
		resource: 'image',
		operation: 'generate',
		model: IMAGE_MODEL,
		completion,
		options: { maxInFlight: MAX_IN_FLIGHT },
	};
	const store: IDataObject = {};
	const nothing = () => undefined;
	let created = 0;
	const answer = ({ method, url }: { method: string; url: string }) => {
		onAnswer();
		if (method === 'POST') return { taskId: `task-${created++}` };
		const taskId = url.slice(url.lastIndexOf('/') + 1);
		const resultUrls = [`https://media.example.com/results/${taskId}/0.png`];
		return { taskId, state: 'SUCCESS', resultUrls, creditsConsumed: 8, model: IMAGE_MODEL };
	};
	const context = {
		getInputData: () => items,
		getNodeParameter: (name: string, index: number, fallback: unknown) =>
			name === 'prompt' ? items[index]?.json.prompt : (parameters[name] ?? fallback),
		getNode: () => ({
			name: 'Media',
			type: 'mediaGeneration',
			credentials: {},
			parameters: {},
			typeVersion: 1,
		}),
		getContext: () => store,
		getWorkflowDataProxy: () => ({ $runIndex: 0 }),
		getExecutionId: () => '1',
		getExecutionCancelSignal: nothing,
		getMode: () => 'manual',
		continueOnFail: () => false,
		addExecutionHints: nothing,
		logger: { debug: nothing, info: nothing, warn: nothing, error: nothing },
		getCredentials: async () => ({ baseUrl: 'https://api.example.com', apiKey: 'sk-live-none' }),
		helpers: {
			httpRequestWithAuthentication: async (
				_type: string,
				request: { method: string; url: string },
			) => ({ statusCode: 200, headers: {}, body: JSON.stringify(answer(request)) }),
		},
	};
	return context as unknown as IExecuteFunctions;
}
