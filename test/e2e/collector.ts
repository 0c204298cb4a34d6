import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

import { node } from './nodes';

const BARRIER = '/barrier/';

/** Counts what the workflow after a trigger does to the outside world: one request for each item. */
export class Collector {
	readonly seen: string[] = [];

	/** When, milliseconds since 1970, in the order of `seen`. */
	readonly times: number[] = [];

	/** So many of the next requests are answered 500 and not counted. */
	failures = 0;

	/** Executions that are held up by a barrier node. */
	private readonly held: Array<() => void> = [];

	private isOpen = false;

	private constructor(
		private readonly server: ReturnType<typeof createServer>,
		private readonly port: number,
	) {}

	static async open(): Promise<Collector> {
		const server = createServer((request, response) => {
			const url = request.url ?? '';
			if (url.startsWith(BARRIER)) {
				const taskId = decodeURIComponent(url.slice(BARRIER.length));
				const letGo = () => {
					response.setHeader('content-type', 'application/json').end(JSON.stringify({ taskId }));
				};
				if (collector.isOpen) letGo();
				else collector.held.push(letGo);
				return;
			}
			if (collector.failures > 0) {
				collector.failures--;
				response.statusCode = 500;
			} else {
				collector.times.push(Date.now());
				collector.seen.push(decodeURIComponent(url.slice(1)));
			}
			response.end('{}');
		});
		await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
		const collector = new Collector(server, (server.address() as AddressInfo).port);
		return collector;
	}

	/** A node that reports each item's task id here. */
	node(name = 'After') {
		return this.poster(name, '/');
	}

	/** A node that holds up each execution until the barrier is opened, and passes its item's task id on. */
	barrierNode(name = 'Barrier') {
		return this.poster(name, BARRIER);
	}

	private poster(name: string, path: string) {
		const url = `=http://127.0.0.1:${this.port}${path}{{ $json.taskId }}`;
		const parameters = { method: 'POST', url, options: {} };
		return node('n8n-nodes-base.httpRequest', name, parameters, 4.2);
	}

	/** As if nothing had been here before. */
	reset(): void {
		this.seen.length = 0;
		this.failures = 0;
		this.isOpen = false;
	}

	/** Waits until so many executions stand before the barrier. */
	async untilHeld(count: number, timeoutMs = 60_000): Promise<void> {
		const giveUp = Date.now() + timeoutMs;
		while (this.held.length < count) {
			if (Date.now() > giveUp) throw new Error(`Only ${this.held.length} of ${count} are held`);
			await sleep(100);
		}
	}

	/** Lets those that are held go, and from now on everybody. */
	openBarrier(): void {
		this.isOpen = true;
		for (const letGo of this.held.splice(0)) letGo();
	}

	/** Waits until something was seen this many times, and then as long again as it takes for more to come. */
	async settle(count: number, timeoutMs = 60_000): Promise<void> {
		const giveUp = Date.now() + timeoutMs;
		while (this.seen.length < count && Date.now() < giveUp) await sleep(100);
		await sleep(1500);
	}

	close(): void {
		this.server.close();
		this.server.closeAllConnections();
	}
}
