import { setTimeout as sleep } from 'node:timers/promises';

import { N8nClient } from '../n8n/client';
import { callbackAddress } from '../../nodes/MediaGeneration/callback/callbackToken';
import { deliver, inARow } from './nodes';
import type { Scene } from './scene';

/** Real senders give up an attempt after 10 to 15 s, and the callback after hours or days. */
const ATTEMPT_LIMIT_MS = 15_000;
const GIVE_UP_AFTER_MS = 120_000;
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 4_000;

/** What became of the callbacks of some tasks. */
export interface Account {
	deliveries: number;
	/** In n8n's list of executions, by their status. */
	executions: Record<string, number>;
	/** How often the workflow did what it is there for. */
	runs: number;
	/** Of those runs, how many were of a task that had had one. */
	duplicates: number;
	/** Tasks that had none. */
	losses: number;
}

/** A published workflow that starts with a trigger and reports to a collector, in queue mode. */
export class Lane {
	private deliveries = 0;

	/** Finished tasks that this lane is to run once each. */
	readonly tasks: string[] = [];

	private constructor(
		private readonly scene: Scene,
		readonly workflowId: string,
		/** The trigger's path on every process. */
		readonly path: string,
		/** The callback address at each webhook processor, token included. */
		readonly addresses: string[],
	) {}

	/**
	 * @param options.held whether each run waits, before it reports, until the collector lets it go
	 */
	static async publish(scene: Scene, { held = false } = {}): Promise<Lane> {
		const { client, collector, service, stage } = scene;
		const trigger = scene.trigger();
		const before = held ? [collector.barrierNode()] : [];
		const workflow = await client.createWorkflow({
			name: 'Lane',
			...inARow(trigger, ...before, collector.node()),
		});
		const path = client.webhookPath(trigger, 'callback');
		await client.publish(workflow.id);
		const urls = stage.cluster.webhooks.map(({ url }) => url);
		await Promise.all(urls.map(async (url) => await new N8nClient(url).waitForWebhook(path)));
		const addresses = urls.map((url) => callbackAddress(url + path, service.apiKey));
		return new Lane(scene, workflow.id, path, addresses);
	}

	/** Finished tasks that this lane is to run once each, and whose callbacks nobody has delivered yet. */
	finishedTasks(count: number): string[] {
		const tasks = this.scene.stage.finishedTasks(count);
		this.tasks.push(...tasks);
		return tasks;
	}

	/**
	 * Delivers a task's callback as real senders do: what is not answered with 200 is delivered again.
	 *
	 * @param addresses where to, in turn
	 * @throws where it is not taken in two minutes
	 */
	async deliver(taskId: string, addresses: string[]): Promise<void> {
		const giveUp = Date.now() + GIVE_UP_AFTER_MS;
		for (let attempt = 0; ; attempt++) {
			const answer = await this.attempt(taskId, addresses[attempt % addresses.length] ?? '');
			if (answer === '200') return;
			if (Date.now() > giveUp) throw new Error(`Task ${taskId} was not taken: ${answer}`);
			await sleep(Math.min(FIRST_PAUSE_MS * 2 ** attempt, LONGEST_PAUSE_MS));
		}
	}

	/** Delivers the callbacks of tasks at once, each to the addresses in turn until it is taken. */
	async deliverAll(taskIds: readonly string[], addresses = this.addresses): Promise<void> {
		await Promise.all(taskIds.map(async (taskId) => await this.deliver(taskId, addresses)));
	}

	/** Delivers the callbacks of tasks at once, each to all of the addresses. */
	async deliverToEach(taskIds: readonly string[], addresses = this.addresses): Promise<void> {
		await Promise.all(addresses.map(async (address) => await this.deliverAll(taskIds, [address])));
	}

	/**
	 * Delivers a task's callback once.
	 *
	 * @returns the answer's status, or why there was none
	 */
	async attempt(taskId: string, address: string): Promise<string> {
		this.deliveries++;
		try {
			const signal = AbortSignal.timeout(ATTEMPT_LIMIT_MS);
			const response = await deliver(address, { taskId }, { signal });
			await response.arrayBuffer();
			return String(response.status);
		} catch (error) {
			return error instanceof Error ? error.message : String(error);
		}
	}

	/**
	 * Waits until all that was started has ended, counts, and prints it in one line.
	 *
	 * @param fault what happened meanwhile
	 * @param mayHang whether n8n may have lost sight of executions that ran
	 */
	async settle(fault: string, { mayHang = false } = {}): Promise<Account> {
		const executions = await this.scene.stage.cluster.settle(this.workflowId, { mayHang });
		const runs = this.scene.collector.seen.filter((taskId) => this.tasks.includes(taskId));
		const account: Account = {
			deliveries: this.deliveries,
			executions,
			runs: runs.length,
			duplicates: runs.length - new Set(runs).size,
			losses: this.missing().length,
		};
		const started = Object.values(executions).reduce((sum, count) => sum + count, 0);
		const others = Object.entries(executions)
			.filter(([status]) => status !== 'success')
			.map(([status, count]) => `, ${count} of them ${status}`)
			.join('');
		console.log(
			`${fault}: ${this.tasks.length} tasks, ${account.deliveries} deliveries, ${started} executions${others}, ` +
				`${account.runs} runs, ${account.duplicates} duplicates, ${account.losses} losses`,
		);
		return account;
	}

	/** `settle`, where each of so many tasks is to have run once. */
	async expectRuns(count: number, fault: string, options?: { mayHang: boolean }): Promise<Account> {
		const account = await this.settle(fault, options);
		expect(account).toMatchObject({ runs: count, duplicates: 0, losses: 0 });
		return account;
	}

	/** The tasks whose workflow has not run. */
	missing(): string[] {
		return this.tasks.filter((taskId) => !this.scene.collector.seen.includes(taskId));
	}

	/** Retries the executions that n8n marked as crashed, as a user would from the list. */
	async retryCrashed(): Promise<void> {
		for (const id of this.scene.stage.cluster.executionIds(this.workflowId, 'crashed')) {
			await this.scene.client.retryExecution(id);
		}
	}
}
