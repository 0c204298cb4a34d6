/** Shows how far a batch is: one line that is kept up to date on a terminal, else a line for each change. */
export class Progress {
	private readonly start = performance.now();
	private shown = -1;

	/** @param total how many there are in all */
	constructor(
		private readonly total: number,
		private readonly out: NodeJS.WriteStream = process.stdout,
	) {}

	update(finished: number): void {
		if (!this.out.isTTY && finished === this.shown) return;
		this.shown = finished;
		const seconds = ((performance.now() - this.start) / 1000).toFixed(1);
		const text = `${finished} of ${this.total} tasks finished, ${seconds} s`;
		if (this.out.isTTY) {
			const bar = '█'.repeat(finished) + '░'.repeat(Math.max(0, this.total - finished));
			this.out.write(`\r  ${bar}  ${text}`);
		} else {
			this.out.write(`  ${text}\n`);
		}
	}

	/** Ends the line. */
	done(): void {
		if (this.out.isTTY) this.out.write('\n');
	}
}
