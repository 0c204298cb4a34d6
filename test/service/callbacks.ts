import type { Effects } from './effects';
import { type Settings, draw } from './settings';

const RETRIES = 3;
const DEFAULT_BACKOFF_MS = 500;

/** One delivery of a callback, with the status of the answer, where there was one. */
export interface LoggedCallback {
	readonly taskId: string;
	readonly url: string;
	status?: number;
}

export interface Callback {
	readonly taskId: string;
	readonly url: string;
	readonly body: unknown;
}

const isAccepted = ({ status = 0 }: LoggedCallback) => status >= 200 && status < 300;

/** Delivers task-completion callbacks (section 6). */
export class CallbackSender {
	readonly entries: LoggedCallback[] = [];
	/** Cancels each delivery that is still to come. */
	private readonly planned = new Set<() => void>();

	constructor(private readonly effects: Effects) {}

	/** Delivers a callback as the switches say: late, in copies, again when refused, or never. */
	send(callback: Callback, settings: Settings): void {
		if (settings.callbackLost) return;
		this.after(draw(settings.callbackDelayMs), () => {
			const copies = settings.callbackCopies ?? 1;
			for (let copy = 0; copy < copies; copy++) void this.persist(callback, settings, 0);
		});
	}

	/** Delivers a callback once, whatever the answer. */
	async deliver({ taskId, url, body }: Callback): Promise<LoggedCallback> {
		const entry: LoggedCallback = { taskId, url };
		this.entries.push(entry);
		return await this.effects.post(url, body).then(
			(status) => Object.assign(entry, { status }),
			() => entry,
		);
	}

	/** Forgets deliveries: those that were made, and those that are still to come. */
	clear(): void {
		for (const cancel of this.planned) cancel();
		this.planned.clear();
		this.entries.length = 0;
	}

	private async persist(callback: Callback, settings: Settings, retry: number): Promise<void> {
		const entry = await this.deliver(callback);
		// A delivery that was forgotten meanwhile is not made again.
		if (isAccepted(entry) || retry >= RETRIES || !this.entries.includes(entry)) return;
		this.after((settings.callbackBackoffMs ?? DEFAULT_BACKOFF_MS) * 2 ** retry, () => {
			void this.persist(callback, settings, retry + 1);
		});
	}

	private after(ms: number, run: () => void): void {
		if (ms === 0) return run();
		const cancel = this.effects.later(ms, () => {
			this.planned.delete(cancel);
			run();
		});
		this.planned.add(cancel);
	}
}
