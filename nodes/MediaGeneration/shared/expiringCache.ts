import type { Clock } from './clock';

/** What a process remembers for a while, under keys. Of more than it may hold the oldest goes. */
export class ExpiringCache<T> {
	/** The oldest first. */
	private readonly entries = new Map<string, { value: T; at: number }>();

	constructor(
		private readonly clock: Clock,
		private readonly maxAgeMs: number,
		private readonly most: number,
	) {}

	get(key: string): T | undefined {
		const entry = this.entries.get(key);
		return entry && this.clock.now() - entry.at < this.maxAgeMs ? entry.value : undefined;
	}

	/** Its age counts from now, also where it was there before. */
	set(key: string, value: T): void {
		const now = this.clock.now();
		this.entries.delete(key);
		this.entries.set(key, { value, at: now });
		for (const [oldest, { at }] of this.entries) {
			if (this.entries.size <= this.most && now - at < this.maxAgeMs) return;
			this.entries.delete(oldest);
		}
	}

	delete(key: string): void {
		this.entries.delete(key);
	}
}
