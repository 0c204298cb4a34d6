/** The tasks that one run has created, in the order of creation: whatever ends the run names them. */
export class CreatedTaskList {
	private readonly states = new Map<string, string>();

	/** @param earlier the ids of tasks that an earlier try of this run created */
	constructor(earlier: readonly string[]) {
		for (const taskId of earlier) this.states.set(taskId, 'not read again');
	}

	add(taskId: string): void {
		this.states.set(taskId, 'PENDING');
	}

	has(taskId: string): boolean {
		return this.states.has(taskId);
	}

	/** Notes what became of a task, if this run created it. */
	note(taskId: string, state: string): void {
		if (this.states.has(taskId)) this.states.set(taskId, state);
	}

	/** @returns every id with its state, and how to fetch them; undefined where there are none */
	describe(): string | undefined {
		if (this.states.size === 0) return undefined;
		const byState = new Map<string, string[]>();
		for (const [taskId, state] of this.states) {
			const ids = byState.get(state);
			if (ids) ids.push(taskId);
			else byState.set(state, [taskId]);
		}
		const lists = [...byState].map(([state, ids]) => `${state}: ${ids.join(', ')}`);
		return `Tasks created by this run, which the operation Task → Wait fetches: ${lists.join('; ')}.`;
	}
}
