/** What a piece of work came to: its value, or what it threw. */
export type Attempt<T> = { value: T } | { error: unknown };

/**
 * Does a piece of work and hands on what it throws as a value, where what follows depends on the kind of error.
 * n8n's rules forbid rethrowing inside a `catch`, since that loses context; nothing is lost here.
 */
export async function attempt<T>(work: () => Promise<T>): Promise<Attempt<T>> {
	try {
		return { value: await work() };
	} catch (error) {
		return { error };
	}
}
