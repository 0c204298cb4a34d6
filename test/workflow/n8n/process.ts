import type { ICredentialType, INodeType } from 'n8n-workflow';

import type { Places } from './places';

export type Role = 'main' | 'worker' | 'webhook';

/** What a process has loaded. */
export interface Loaded {
	nodes: Record<string, INodeType>;
	credential?: ICredentialType;
}

/** How a process dies: after so many effects. The last of them still takes place, or does not. */
export interface Death {
	afterEffects: number;
	isSeen: boolean;
	downMs: number;
	/** Whether what happens at present is such an effect. @param isCreate whether it is a create that is sent */
	counts: (isCreate: boolean) => boolean;
}

/**
 * One process of n8n, from its start to its end: modules of its own, so that what the nodes keep in memory is gone
 * with it.
 */
export class Process {
	isDead = false;

	/** In which event the process died, and when, milliseconds since the history began. */
	diedIn = Infinity;
	diedAt = Infinity;

	/** The executions that run in it, and how to stop them. */
	readonly running = new Map<string, { cancel(): void }>();

	/** Sleeping executions for which a timer of this process is set. */
	readonly timers = new Set<string>();

	private effects = 0;

	/**
	 * @param loaded for this process alone
	 * @param places of the executions that run in it
	 */
	constructor(
		readonly name: string,
		readonly role: Role,
		readonly loaded: Loaded,
		readonly places: Places,
		private readonly death: Death | undefined,
		private readonly onDeath: (process: Process) => void,
	) {}

	/**
	 * Notes something that is seen outside of the process: a request, a write to the database, a line in the log.
	 *
	 * @param isCreate whether it is a create that is sent to the service
	 * @returns whether it takes place: a dead process does nothing
	 */
	effect(isCreate = false): boolean {
		if (this.isDead) return false;
		if (!this.death?.counts(isCreate) || this.effects++ < this.death.afterEffects) return true;
		this.die();
		return this.death.isSeen;
	}

	/** A power cut: nothing of it is heard any more. */
	die(): void {
		if (this.isDead) return;
		this.isDead = true;
		this.onDeath(this);
	}
}
