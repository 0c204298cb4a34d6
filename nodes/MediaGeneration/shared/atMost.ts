/** Does pieces of work in the order in which they come, at most so many at once. */
export class AtMost {
	private running = 0;

	private readonly waiting: Array<() => void> = [];

	constructor(private readonly most: number) {}

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
