import type { WorkflowExecuteMode } from 'n8n-workflow';

/** Executions that need a place: those that nobody has started by hand, and that no workflow has called. */
export const needsPlace = (mode: WorkflowExecuteMode): boolean =>
	['webhook', 'trigger', 'chat'].includes(mode);

/**
 * The places of n8n's production concurrency limit, and who waits for one, in order: an execution may wait more than once
 * (`ConcurrencyQueue` of n8n 2.41). All of it is in the memory of one process.
 */
export class Places {
	private readonly waiting: Array<{ id: string; go: () => void }> = [];

	/** @param free Infinity without a limit */
	constructor(private free: number) {}

	get isLimited(): boolean {
		return this.free !== Infinity;
	}

	/** @param go called when the execution has its place */
	take(id: string, go: () => void): void {
		if (this.free-- > 0) go();
		else this.waiting.push({ id, go });
	}

	give(): void {
		this.free++;
		this.waiting.shift()?.go();
	}

	/** An execution that is stopped waits once less. @returns whether it waited */
	leave(id: string): boolean {
		const index = this.waiting.findIndex((each) => each.id === id);
		if (index < 0) return false;
		this.waiting.splice(index, 1);
		this.free++;
		return true;
	}
}
