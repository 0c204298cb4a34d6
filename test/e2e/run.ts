import { setTimeout as sleep } from 'node:timers/promises';
import type { IDataObject } from 'n8n-workflow';

import {
	describe as tell,
	type Execution,
	type ExecutionSummary,
	outputItems,
	until,
} from '../n8n/client';
import type { SimulatedTask } from '../service/service';
import { to } from './nodes';
import type { Scene } from './scene';

const MINUTE = 60_000;

/** A turn after a first one that ordered nothing, or little, may order so many. */
const LEAST_WINDOW = 10;

/** An execution that was started by hand. */
export class Run {
	/** @param name of the workflow, with which the prompts begin */
	constructor(
		private readonly scene: Scene,
		readonly id: string,
		readonly workflowId: string,
		readonly name: string,
	) {}

	async end(timeoutMs = 4 * MINUTE): Promise<Execution> {
		return await this.scene.client.waitForExecution(this.id, timeoutMs);
	}

	async suspended(): Promise<this> {
		await this.scene.client.waitForSuspension(this.id);
		return this;
	}

	async stop(): Promise<void> {
		await this.scene.client.stopExecution(this.id);
	}

	/** @param saved whether with the currently saved workflow. @returns the retry, at its end */
	async retry(saved = false): Promise<Execution> {
		const { client } = this.scene;
		const id = await client.retryExecution(this.id, saved);
		return await client.waitForExecution(id, 4 * MINUTE);
	}

	/** Begins a retry, with the workflow as it was. @returns the retry, which runs */
	async beginRetry(): Promise<Run> {
		const id = await this.scene.client.retryExecution(this.id);
		return new Run(this.scene, id, this.workflowId, this.name);
	}

	/** How often the node went to sleep, by the log. */
	get sleeps(): number {
		const line = new RegExp(`asleep until \\S+ \\(execution ${this.id},`, 'g');
		return (this.scene.log.match(line) ?? []).length;
	}

	/** Until the run sleeps. @param times how often; a run with *Suspend After* 0 creates after its first sleep */
	async asleep(times = 1): Promise<this> {
		await until('the run to sleep', 4 * MINUTE, () => this.sleeps >= times);
		return this;
	}

	/** Until the run has slept, and has created a task since. */
	async inALaterTurn(): Promise<this> {
		await this.asleep();
		const before = this.tasks.length;
		await until('a later turn', 2 * MINUTE, () => this.tasks.length > before + 1);
		return this;
	}

	async now(): Promise<Execution> {
		return await this.scene.client.getExecution(this.id);
	}

	/**
	 * Retries a run of so many items that was ended in a turn that creates tasks: it goes on, pays for nothing twice, and
	 * names the items in doubt: those in the window of that turn.
	 *
	 * @param leastInDoubt how many at least; of a turn that was killed nothing is stored
	 */
	async expectRetryGoesOn(count: number, leastInDoubt = 1): Promise<void> {
		const retried = await this.retry();
		const paid = this.tasks.map(({ record }) => promptOf(record));
		expect(new Set(paid).size).toBe(paid.length);
		// The windows of turns that were cut may hold all that was left: then no item succeeds, and the run ends with an error.
		const isAllInDoubt = retried.status === 'error' && leastInDoubt > 1;
		if (isAllInDoubt) {
			expect(errorOf(retried)?.message).toContain('It is not known');
			return;
		}
		const items = itemsOf(succeeded(retried));
		expect(items.map(promptOf)).toEqual(
			[...Array(count).keys()].map((item) => `${this.name} ${item}`),
		);
		const doubtful = items.filter(({ error }) => String(error).startsWith('It is not known'));
		expect(doubtful.length).toBeGreaterThanOrEqual(leastInDoubt);
		const unsent = doubtful.filter((item) => !paid.includes(promptOf(item)));
		// A window has ten orders, or twice what a minute of the turn before has ordered.
		const most = Math.max(Math.max(1, leastInDoubt) * LEAST_WINDOW, 2 * paid.length);
		expect(unsent.length).toBeLessThanOrEqual(most);
		const rest = items.filter((item) => !doubtful.includes(item));
		expect(new Set(rest.map(({ state }) => state))).toEqual(new Set(['SUCCESS']));
	}

	/** What *Get* brings for the number of this execution, by a new node of the same workflow: it runs in place of the others. */
	async fetched(execution = this.id): Promise<{ items: IDataObject[]; hints: string[] }> {
		const { client } = this.scene;
		const { nodes } = await client.getWorkflow(this.workflowId);
		const parameters = { resource: 'task', operation: 'get', taskId: `execution ${execution}` };
		const fetch = this.scene.media(parameters, { name: 'Fetch' });
		const changed = { nodes: [...nodes, fetch], connections: { Start: { main: to('Fetch') } } };
		await client.updateWorkflow(this.workflowId, changed);
		const id = await client.run(this.workflowId);
		const ended = succeeded(await client.waitForExecution(id));
		const [run] = ended.data.resultData.runData.Fetch ?? [];
		return {
			items: itemsOf(ended, 'Fetch'),
			hints: (run?.hints ?? []).map(({ message }) => message),
		};
	}

	/** All executions of the workflow, newest first. */
	async executions(): Promise<ExecutionSummary[]> {
		return await this.scene.client.listExecutions({ workflowId: this.workflowId });
	}

	/** The items of the short execution that a stop of this run has left. */
	async left(): Promise<IDataObject[]> {
		const ended = async () => (await this.others()).find(({ status }) => status === 'success');
		await until('the short execution', MINUTE, async () => (await ended()) !== undefined);
		const left = await this.scene.client.waitForExecution((await ended())!.id);
		return itemsOf(succeeded(left), 'Starts by itself');
	}

	/** The other executions of the workflow, newest first. */
	async others(): Promise<ExecutionSummary[]> {
		return (await this.executions()).filter(({ id }) => id !== this.id);
	}

	/** The tasks of the run, oldest first. */
	get tasks(): SimulatedTask[] {
		return this.scene.tasks.filter(({ record }) => promptOf(record).startsWith(`${this.name} `));
	}

	get taskIds(): string[] {
		return this.tasks.map(({ taskId }) => taskId);
	}

	/** How often the service was asked for the tasks of the run. */
	get reads(): number {
		const ids = this.taskIds;
		return this.scene.reads.filter(({ path }) => ids.some((id) => path.endsWith(id))).length;
	}
}

/** The prompt of a task, by its record or by an item. */
export const promptOf = ({ input }: { input?: unknown }) => String((input as IDataObject).prompt);

/** What left a node, without its files. */
export const itemsOf = (execution: Execution, node = 'Media'): IDataObject[] =>
	outputItems(execution, node).map(({ json }) => json);

export const statesOf = (execution: Execution, node = 'Media') =>
	itemsOf(execution, node).map(({ state }) => state);

export const errorOf = ({ data }: Execution) => data.resultData.error;

/** @throws where an execution did not succeed */
export function succeeded(execution: Execution): Execution {
	if (execution.status !== 'success') throw new Error(tell(execution));
	return execution;
}

/** Declares a story. */
export type Story = (title: string, happen: () => Promise<void>) => void;

/**
 * For stories that happen at the same time: all of them begin before the first test, and each test waits for its own.
 *
 * @param pauseMs between the beginnings of two of them
 * @returns declares a story
 */
export function atTheSameTime(declare: jest.It, pauseMs: number, limitMs = 8 * MINUTE): Story {
	const stories = new Map<string, () => Promise<void>>();
	const outcomes = new Map<string, Promise<void>>();
	beforeAll(async () => {
		if (declare === test.skip) return;
		for (const [title, happen] of stories) {
			const outcome = happen();
			outcome.catch(() => undefined);
			outcomes.set(title, outcome);
			await sleep(pauseMs);
		}
	}, 900_000);
	return (title, happen) => {
		stories.set(title, happen);
		declare(title, async () => await outcomes.get(title), limitMs);
	};
}
