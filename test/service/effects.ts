/** What the model of the service leaves to whoever runs it: time, chance, and the network. */
export interface Effects {
	/** @returns milliseconds since the epoch */
	now(): number;
	/** Does something so many milliseconds later. @returns cancels it */
	later(ms: number, run: () => void): () => void;
	/** @returns an id that no other task has */
	newTaskId(): string;
	/** Delivers a callback. @returns the status of the answer @throws where there is none */
	post(url: string, body: unknown): Promise<number>;
}

/** The time of this process, be it the real one or virtual. */
export const ofThisProcess: Pick<Effects, 'now' | 'later'> = {
	now: () => Date.now(),
	later(ms, run) {
		const timer = setTimeout(run, ms);
		return () => clearTimeout(timer);
	},
};
