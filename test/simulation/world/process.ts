import type { LoadedNodes } from './nodeSources';

export type Role = 'main' | 'worker' | 'webhook';

/**
 * One process of n8n, from its start to its end: modules of its own, so that what the nodes keep in memory is gone
 * with it.
 */
export class Process {
	isDead = false;

	/** In which event of the history it died. */
	diedIn = Infinity;

	/** How many effects it has had. */
	private effects = 0;

	/** The executions that run in it, and how to stop them. */
	readonly running = new Map<string, { cancel(): void }>();

	/** Waiting executions for which a timer of this process is set. */
	readonly timers = new Set<string>();

	/** Whether it may still die: at the end of a history it may not. */
	isMortal: () => boolean = () => true;

	/** Whether what happens at present counts as an effect after which it dies. */
	counts: () => boolean = () => true;

	/**
	 * @param nodes the package's node types, loaded for this process alone
	 * @param death after how many effects it dies, and whether the last of them still takes place
	 * @param onDeath called in the moment of its death; returns the number of the present event
	 */
	constructor(
		readonly name: string,
		readonly role: Role,
		readonly nodes: LoadedNodes,
		private readonly death: { afterEffects: number; isSeen: boolean } | undefined,
		private readonly onDeath: (process: Process) => number,
	) {}

	/**
	 * Notes something that is seen outside of the process: a request, a write to the database, a line in the log.
	 *
	 * @returns whether it takes place: a dead process does nothing
	 */
	effect(): boolean {
		if (this.isDead) return false;
		if (this.death === undefined || !this.isMortal() || !this.counts()) return true;
		if (this.effects++ < this.death.afterEffects) return true;
		this.die();
		return this.death.isSeen;
	}

	/** A power cut: nothing of it is heard any more. */
	die(): void {
		if (this.isDead) return;
		this.isDead = true;
		this.diedIn = this.onDeath(this);
	}
}
