/** Does pieces of work in order, at most a given number at once. */
export class Semaphore {
	private running = 0;
	private readonly waiting: Array<() => void> = [];

	constructor(private readonly most: number) {}

	get isBusy(): boolean {
		return this.running > 0;
	}

	async run<T>(work: () => Promise<T>): Promise<T> {
		if (this.running >= this.most) await new Promise<void>((resolve) => this.waiting.push(resolve));
		else this.running++;
		try {
			return await work();
		} finally {
			const next = this.waiting.shift();
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

const MOST_AT_ONCE = 25;

/** Works on one entry, then on two at once, on four and so on: the first entries usually tell enough. */
export async function inGrowingGroups<T>(
	entries: readonly T[],
	work: (entry: T) => Promise<unknown>,
	isEnough: () => boolean,
): Promise<void> {
	for (let at = 0, size = 1; at < entries.length && !isEnough();) {
		await Promise.all(entries.slice(at, at + size).map(work));
		at += size;
		size = Math.min(2 * size, MOST_AT_ONCE);
	}
}
