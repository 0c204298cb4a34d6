import { ExecutionLifecycleHooks } from 'n8n-core';
import type { IRunExecutionData, IWorkflowBase } from 'n8n-workflow';

import { type Ran, startWorkflow, type TestWorkflow } from './engine';
import { dataOfRetry, fromStored, toStored } from './stored';
import { passTime } from './time';

/** More often no run of a test sleeps. */
const MOST_WAKES = 400;

/** Lets so many milliseconds pass. */
export const pass = async (ms: number) =>
	await passTime(new Promise<void>((resolve) => void setTimeout(resolve, Math.max(0, ms))));

/** A run that n8n stores while it sleeps, as text, and wakes at its time. */
export class Sleeper {
	/** What n8n has stored of the execution last. */
	stored = '';

	/** The run so far. */
	ran!: Ran;

	wakes = 0;

	private retries = 0;

	/** When the run went to sleep and is to be woken, milliseconds since 1970. */
	readonly sleeps: Array<{ from: number; until: number }> = [];

	/** What stood above the output while the run slept. */
	readonly progress: string[] = [];

	constructor(
		readonly test: TestWorkflow,
		private executionId = '1',
	) {}

	/** The first turn. */
	async begin(stored?: Parameters<typeof startWorkflow>[1]): Promise<Ran> {
		return this.note(await passTime(startWorkflow(this.test, stored).result));
	}

	/** n8n wakes the run when its time has come. @param more what is different from now on */
	async wake(more: Partial<TestWorkflow> = {}): Promise<Ran> {
		await this.untilDue();
		return this.note(await passTime(this.goOn(more)));
	}

	/** A turn of which nothing is stored, because its process is killed at its end. */
	async killedTurn(): Promise<void> {
		await this.untilDue();
		await passTime(this.goOn());
	}

	/**
	 * n8n wakes the run twice from the same stored state, as at a start at which the run is due.
	 *
	 * @param apartMs how long after the first turn has begun
	 * @returns what the second one comes to; the run goes on with what the first one has stored
	 */
	async wakeTwice(apartMs: number): Promise<Ran> {
		await this.untilDue();
		const living = this.goOn();
		await pass(apartMs);
		const twin = await passTime(this.goOn());
		this.note(await passTime(living));
		return twin;
	}

	/** The turns up to the end. */
	async toEnd(more: Partial<TestWorkflow> = {}): Promise<Ran> {
		while (this.ran.isSuspended) await this.wake(more);
		return this.ran;
	}

	/**
	 * *Retry execution* of n8n's list of executions.
	 *
	 * @param workflow the one that was stored with the execution, or the one that is saved now
	 */
	async retry(
		workflow: 'original' | 'current' = 'original',
		more: Partial<TestWorkflow> = {},
	): Promise<Sleeper> {
		const retryOf = this.executionId;
		const executionId = `${retryOf}${++this.retries}`;
		const earlier = fromStored(this.stored);
		const hooks = new ExecutionLifecycleHooks(
			'retry',
			executionId,
			{ id: 'workflow', name: 'Test', active: true } as IWorkflowBase,
			retryOf,
		);
		const host = {
			executionId,
			hooks,
			getRunExecutionData: async (id: string) => (id === retryOf ? earlier : undefined),
		};
		const retried = new Sleeper({ ...this.test, ...more, mode: 'retry', host }, executionId);
		const data = dataOfRetry(this.stored);
		await retried.begin((_, { nodes }) => {
			if (workflow === 'current') {
				for (const entry of data.executionData?.nodeExecutionStack ?? []) {
					entry.node = nodes[entry.node.name] ?? entry.node;
				}
			}
			return data;
		});
		return retried;
	}

	/** What n8n has stored. */
	get data(): IRunExecutionData {
		return fromStored(this.stored);
	}

	private async untilDue(): Promise<void> {
		const { until = 0 } = this.sleeps.at(-1) ?? {};
		await pass(until - Date.now());
	}

	private async goOn(more: Partial<TestWorkflow> = {}): Promise<Ran> {
		if (++this.wakes > MOST_WAKES) throw new Error('The run sleeps for ever');
		const { hooks: _, ...host } = this.test.host ?? {};
		const test = { ...this.test, host, ...more };
		return await startWorkflow(test, () => fromStored(this.stored)).result;
	}

	private note(ran: Ran): Ran {
		this.ran = ran;
		this.stored = toStored(ran.run.data);
		if (ran.isSuspended) {
			this.sleeps.push({ from: Date.now(), until: new Date(ran.run.waitTill ?? 0).getTime() });
			this.progress.push(...ran.hints);
		}
		return ran;
	}
}
