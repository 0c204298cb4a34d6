import { setTimeout as sleep } from 'node:timers/promises';

import { type Listening, listen } from '../listen';
import { until } from '../n8n/until';
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

	private server!: Listening;

	static async open(): Promise<Collector> {
		const collector = new Collector();
		collector.server = await listen((request, response) => {
			const url = request.url ?? '';
			const answer = (value: unknown) =>
				response.setHeader('content-type', 'application/json').end(JSON.stringify(value));
			if (url.startsWith(BARRIER)) {
				const letGo = () => answer({ taskId: decodeURIComponent(url.slice(BARRIER.length)) });
				if (collector.isOpen) letGo();
				else collector.held.push(letGo);
			} else if (collector.failures > 0) {
				collector.failures--;
				response.writeHead(500).end('{}');
			} else {
				collector.times.push(Date.now());
				collector.seen.push(decodeURIComponent(url.slice(1)));
				response.end('{}');
			}
		});
		return collector;
	}

	/** A node that reports each item's task id here. */
	node(name = 'After') {
		return this.poster(name, `=${this.server.url}/{{ $json.taskId }}`);
	}

	/** A node that holds up each execution until the barrier is opened, and passes its item's task id on. */
	barrierNode() {
		return this.poster('Barrier', `=${this.server.url}${BARRIER}{{ $json.taskId }}`);
	}

	private poster(name: string, url: string) {
		const parameters = { method: 'POST', url, options: {} };
		return node('n8n-nodes-base.httpRequest', name, parameters, 4.2);
	}

	reset(): void {
		this.seen.length = 0;
		this.times.length = 0;
		this.failures = 0;
		this.isOpen = false;
	}

	async untilHeld(count: number, timeoutMs = 60_000): Promise<void> {
		const what = () => `${count} executions to be held, not ${this.held.length}`;
		await until(what, timeoutMs, () => this.held.length >= count);
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

	async close(): Promise<void> {
		await this.server.close();
	}
}

/** Does something with a collector of its own. */
export async function withCollector<T>(work: (collector: Collector) => Promise<T>): Promise<T> {
	const collector = await Collector.open();
	try {
		return await work(collector);
	} finally {
		await collector.close();
	}
}
