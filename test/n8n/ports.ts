import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';

export const HOST = '127.0.0.1';

/**
 * Below the ports that a system gives to whoever asks for any: between the choice and its use, which may be seconds,
 * a connection that begins meanwhile must not be given the same.
 */
const CHOSEN_FROM = [20_000, 32_000] as const;

/** What this process has been given. */
const given = new Set<number>();

/** @returns a port that nobody listened on a moment ago, and that this process is not given again soon */
export async function freePort(): Promise<number> {
	// By chance: several processes look at once.
	const port = randomInt(...CHOSEN_FROM);
	if (given.has(port) || !(await isFree(port))) return await freePort();
	given.add(port);
	return port;
}

async function isFree(port: number): Promise<boolean> {
	return await assertPortFree(port, 'a test').then(
		() => true,
		() => false,
	);
}

/** @throws where another program listens on the port */
export async function assertPortFree(port: number, purpose: string): Promise<void> {
	const server = createServer().listen(port, HOST);
	await once(server, 'listening').catch((cause: NodeJS.ErrnoException) => {
		throw new Error(
			`Port ${port} of ${HOST} cannot be had (${cause.code}); ${purpose} needs it. Stop the program that listens there, or choose another port.`,
			{ cause },
		);
	});
	await once(server.close(), 'close');
}
