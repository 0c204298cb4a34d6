import { randomInt } from 'node:crypto';

import { settled } from '../../nodes/MediaGeneration/shared/clock';
import { listen } from '../listen';

export const HOST = '127.0.0.1';

/**
 * A system gives the ports above these to whoever asks for any port. Between the choice of a port and its use, which may
 * be seconds apart, the system must not give the port to a connection.
 */
const CHOSEN_FROM = [20_000, 32_000] as const;

/** The ports that this process has chosen. */
const chosen = new Set<number>();

const isFree = async (port: number): Promise<boolean> => {
	const tried = await settled(listen(() => undefined, port));
	if ('value' in tried) await tried.value.close();
	return 'value' in tried;
};

/** @returns a port on which nobody listened a moment ago; by chance, because several processes choose at once */
export async function freePort(): Promise<number> {
	for (;;) {
		const port = randomInt(...CHOSEN_FROM);
		if (chosen.has(port)) continue;
		chosen.add(port);
		if (await isFree(port)) return port;
	}
}

/** @throws where another program listens on the port, or this process has chosen the port */
export async function assertPortFree(port: number, purpose: string): Promise<void> {
	if (!chosen.has(port) && (await isFree(port))) return;
	throw new Error(
		`Another program listens on port ${port} of ${HOST}, and ${purpose} needs it. Stop that program, or choose another port.`,
	);
}
