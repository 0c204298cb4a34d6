/** Does pieces of work, at most a given number at once. */
export class Semaphore {
	private running = 0;
	private readonly waiting: Array<() => void> = [];

	/** @param newestFirst whether the work that came last is done next; otherwise the work is done in order */
	constructor(
		private readonly most: number,
		private readonly newestFirst = false,
	) {}

	async run<T>(work: () => Promise<T>): Promise<T> {
		if (this.running < this.most) this.running++;
		else await new Promise<void>((resolve) => this.waiting.push(resolve));
		try {
			return await work();
		} finally {
			const next = this.newestFirst ? this.waiting.pop() : this.waiting.shift();
			if (next) next();
			else this.running--;
		}
	}
}

/** The outcome of a piece of work: its value, or what it threw. */
type Settled<T> = { value: T } | { error: unknown };

/**
 * Returns the error of a piece of work as a value, for code that depends on the kind of error. n8n's rules forbid
 * rethrowing in a `catch`, because that loses context; nothing is lost here.
 */
export async function settled<T>(work: Promise<T> | (() => Promise<T>)): Promise<Settled<T>> {
	try {
		return { value: await (typeof work === 'function' ? work() : work) };
	} catch (error) {
		return { error };
	}
}
