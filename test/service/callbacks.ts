import * as http from 'node:http';
import * as https from 'node:https';
import { setTimeout as pause } from 'node:timers/promises';

import { type Settings, draw } from './settings';
const TIMEOUT_MS = 15_000;
const DEFAULT_RETRIES = 3;
const DEFAULT_BACKOFF_MS = 500;

/** One delivery of a callback, with the answer it got or the reason why it got none. */
export interface LoggedCallback {
	/** Milliseconds since the epoch. */
	readonly at: number;
	readonly taskId: string;
	readonly url: string;
	status?: number;
	error?: string;
}

export interface Callback {
	readonly taskId: string;
	readonly url: string;
	readonly body: unknown;
}

const accepted = ({ status }: LoggedCallback) =>
	status !== undefined && status >= 200 && status < 300;

/** Delivers task-completion callbacks (section 6). */
export class CallbackSender {
	readonly entries: LoggedCallback[] = [];
	private aborter = new AbortController();

	/** Delivers a callback as the switches say: late, in copies, again when refused, or never. */
	async send(callback: Callback, settings: Settings): Promise<void> {
		if (settings.callbackLost) return;
		const { signal } = this.aborter;
		try {
			const delay = draw(settings.callbackDelayMs, 0);
			if (delay > 0) await pause(delay, undefined, { signal });
			const copies = Array.from({ length: settings.callbackCopies ?? 1 }, () =>
				this.persist(callback, settings, signal),
			);
			await Promise.all(copies);
		} catch (error) {
			if (!signal.aborted) throw error;
		}
	}

	/** Delivers a callback once, whatever the answer. */
	deliver(
		{ taskId, url, body }: Callback,
		signal: AbortSignal = this.aborter.signal,
	): Promise<LoggedCallback> {
		const entry: LoggedCallback = { at: Date.now(), taskId, url };
		this.entries.push(entry);
		return post(url, JSON.stringify(body), signal).then(
			(status) => Object.assign(entry, { status }),
			(error: Error) => Object.assign(entry, { error: error.message }),
		);
	}

	/** Ends deliveries under way and forgets those that were made. */
	clear(): void {
		this.aborter.abort();
		this.aborter = new AbortController();
		this.entries.length = 0;
	}

	private async persist(callback: Callback, settings: Settings, signal: AbortSignal) {
		const retries = settings.callbackRetries ?? DEFAULT_RETRIES;
		let wait = settings.callbackBackoffMs ?? DEFAULT_BACKOFF_MS;
		for (let retry = 0; ; retry++, wait *= 2) {
			const entry = await this.deliver(callback, signal);
			if (accepted(entry) || retry >= retries) return;
			await pause(wait, undefined, { signal });
		}
	}
}

/** A POST on a connection of its own, so that no receiver is kept from closing by an idle one. */
function post(url: string, body: string, signal: AbortSignal): Promise<number> {
	const { request } = url.startsWith('https:') ? https : http;
	return new Promise((resolve, reject) => {
		const outgoing = request(url, {
			method: 'POST',
			agent: false,
			signal,
			timeout: TIMEOUT_MS,
			headers: { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) },
		});
		outgoing.on('timeout', () => {
			outgoing.destroy(new Error(`No answer within ${TIMEOUT_MS / 1000} seconds`));
		});
		outgoing.on('error', reject);
		outgoing.on('response', (response) => {
			response.on('error', reject);
			response.on('end', () => resolve(response.statusCode ?? 0));
			response.resume();
		});
		outgoing.end(body);
	});
}
