import { setTimeout as sleep } from 'node:timers/promises';

import { N8nClient } from '../n8n/client';
import { callbackAddress } from '../../nodes/MediaGeneration/callback/callbackAddress';
import { bySenders, deliver } from './nodes';
import type { Scene } from './scene';

/** Real senders give up an attempt after 10 to 15 s, and the callback after hours or days. */
const ATTEMPT_LIMIT_MS = 15_000;
const GIVE_UP_AFTER_MS = 120_000;
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 4_000;

/** For the tests in queue mode: a published workflow that starts with a trigger and reports to a collector. */
export class Lane {
	deliveries = 0;

	/** Finished tasks that this lane is to run once each. */
	readonly tasks: string[] = [];

	private constructor(
		private readonly scene: Scene,
		readonly workflowId: string,
		readonly path: string,
		/** The callback address at each webhook processor, token included. */
		readonly addresses: string[],
	) {}

	/** @param options.held whether each run waits, before it reports, until the collector lets it go */
	static async publish(scene: Scene, { held = false } = {}): Promise<Lane> {
		const { collector, service, stage } = scene;
		const before = held ? [collector.barrierNode()] : [];
		const { id, path } = await scene.publish(scene.trigger(), { before });
		const urls = stage.cluster.webhooks.map(({ url }) => url);
		await Promise.all(urls.map(async (url) => await new N8nClient(url).waitForWebhook(path)));
		const addresses = urls.map((url) => callbackAddress(url + path, service.apiKey));
		return new Lane(scene, id, path, addresses);
	}

	finishedTasks(count: number): string[] {
		const tasks = this.scene.stage.finishedTasks(count);
		this.tasks.push(...tasks);
		return tasks;
	}

	/** Delivers a callback as real senders do: to the addresses in turn, until one answers 200. */
	async deliver(taskId: string, addresses: string[]): Promise<void> {
		const giveUp = Date.now() + GIVE_UP_AFTER_MS;
		for (let attempt = 0; ; attempt++) {
			const answer = await this.attempt(taskId, addresses[attempt % addresses.length] ?? '');
			if (answer === '200') return;
			if (Date.now() > giveUp) throw new Error(`Task ${taskId} was not taken: ${answer}`);
			await sleep(Math.min(FIRST_PAUSE_MS * 2 ** attempt, LONGEST_PAUSE_MS));
		}
	}

	async deliverAll(taskIds: readonly string[], addresses = this.addresses): Promise<void> {
		await bySenders(taskIds, async (taskId) => await this.deliver(taskId, addresses));
	}

	/** Delivers each callback to all of the addresses at the same moment. */
	async deliverToEach(taskIds: readonly string[], addresses = this.addresses): Promise<void> {
		await bySenders(taskIds, async (taskId) => {
			await Promise.all(addresses.map(async (address) => await this.deliver(taskId, [address])));
		});
	}

	/** Delivers a task's callback once. @returns the answer's status, or why there was none */
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
	 * Waits until all that was started has ended, and counts.
	 *
	 * @param mayHang whether n8n may have lost sight of executions that ran
	 * @returns the executions by their status; the runs, how many of them were of a task that had had one, and how many
	 * tasks had none
	 */
	async settle({ mayHang = false } = {}) {
		const executions = await this.scene.stage.cluster.settle(this.workflowId, { mayHang });
		const runs = this.scene.collector.seen.filter((taskId) => this.tasks.includes(taskId));
		const duplicates = runs.length - new Set(runs).size;
		return { executions, runs: runs.length, duplicates, losses: this.missing().length };
	}

	/** `settle`, where each of so many tasks is to have run once. */
	async expectRuns(count: number, options?: { mayHang: boolean }): Promise<void> {
		const account = await this.settle(options);
		expect(account).toMatchObject({ runs: count, duplicates: 0, losses: 0 });
	}

	missing(): string[] {
		return this.tasks.filter((taskId) => !this.scene.collector.seen.includes(taskId));
	}
}
