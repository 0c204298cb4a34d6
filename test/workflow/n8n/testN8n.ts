import { type ICredentialsHelper, type IDataObject, type INodeType } from 'n8n-workflow';

import type { Definition, Row } from './database';
import { MemoryN8n } from './memoryN8n';
import { nodeType } from './nodes';
import type { Loaded } from './process';
import { Randomness } from './randomness';
import { HistoryTime } from './time';

/** An n8n for one workflow of a test, which begins at its node `start` and ends in its node `sink`. */
export class TestN8n extends MemoryN8n {
	/** What left for the node `sink`, of each of its runs. */
	readonly out: IDataObject[][] = [];

	definition: Definition;

	constructor(
		time: HistoryTime,
		definition: Definition,
		private readonly types: Record<string, INodeType>,
		isQueueMode = false,
	) {
		super(time, new Randomness(1), { isQueueMode, slowestQueryMs: 5, storesLateMs: 0 });
		this.definition = definition;
		this.processes.start();
	}

	load(): Loaded {
		const start = nodeType(async (context) => await Promise.resolve([context.getInputData()]));
		const sink = nodeType(async (context) => {
			this.out.push(context.getInputData().map(({ json }) => json));
			return await Promise.resolve([context.getInputData()]);
		});
		return { nodes: { start, sink, ...this.types } };
	}

	protected credentials(): ICredentialsHelper {
		return {} as ICredentialsHelper;
	}

	/** A process dies where a test kills it. */
	deathOf(): undefined {}

	trace(): void {}

	note(): void {}

	noteSleep(): void {}

	/** Starts the workflow, and lets some seconds pass. */
	async start(items: IDataObject[], seconds = 1): Promise<Row> {
		const row = this.executions.begin({
			mode: 'trigger',
			start: 'start',
			items: items.map((json) => ({ json })),
		});
		await this.pass(seconds);
		return row;
	}

	async pass(seconds: number): Promise<void> {
		await this.time.run(this.time.now + seconds * 1000);
	}

	/** A power cut. n8n is back a second later. */
	async kill(row: Row): Promise<void> {
		row.process?.die();
		await this.pass(120);
	}
}

/** Does something with an n8n of its own, in virtual time. */
export const inN8n = async <T>(
	definition: Definition,
	types: Record<string, INodeType>,
	work: (n8n: TestN8n) => Promise<T>,
	isQueueMode = false,
): Promise<T> =>
	await HistoryTime.rule(
		Math.random,
		async (time) => await work(new TestN8n(time, definition, types, isQueueMode)),
	);
