import { randomInt } from 'node:crypto';

import getPort from 'get-port';

export const HOST = '127.0.0.1';

/**
 * A system gives the ports above these to whoever asks for any port. Between the choice of a port and its use, which may
 * be seconds apart, the system must not give the port to a connection.
 */
const CHOSEN_FROM = [20_000, 32_000] as const;

/** @returns a port on which nobody listened a moment ago; by chance, because several processes choose at once */
export async function freePort(): Promise<number> {
	const port = Array.from({ length: 20 }, () => randomInt(...CHOSEN_FROM));
	return await getPort({ host: HOST, port, reserve: true });
}

/** @throws where another program listens on the port, or this process has asked for the port before */
export async function assertPortFree(port: number, purpose: string): Promise<void> {
	if ((await getPort({ host: HOST, port })) === port) return;
	throw new Error(
		`Another program listens on port ${port} of ${HOST}, and ${purpose} needs it. Stop that program, or choose another port.`,
	);
}
