import { setTimeout as sleep } from 'node:timers/promises';

/** Another workflow is called so often meanwhile. */
export const PING_EVERY_MS = 250;

/** Calls of another workflow, one after the other, until they are stopped. */
export class Pings {
	longestMs = 0;

	private isOn = true;

	private isCounted = true;

	private readonly ended: Promise<void>;

	constructor(private readonly url: string) {
		this.ended = this.run();
	}

	/** Does something that holds n8n up by itself, and counts nothing of it. */
	async without<T>(work: () => Promise<T>): Promise<T> {
		this.isCounted = false;
		const result = await work();
		await sleep(4 * PING_EVERY_MS);
		this.isCounted = true;
		return result;
	}

	async stop(): Promise<void> {
		this.isOn = false;
		await this.ended;
	}

	private async run(): Promise<void> {
		while (this.isOn) {
			const at = performance.now();
			const wasCounted = this.isCounted;
			await (await fetch(this.url, { method: 'POST' })).arrayBuffer();
			if (wasCounted && this.isCounted) {
				this.longestMs = Math.max(this.longestMs, performance.now() - at);
			}
			await sleep(PING_EVERY_MS);
		}
	}
}
