import getPort from 'get-port';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';

export const HOST = '127.0.0.1';

/**
 * Below the ports that a system gives to whoever asks for any: between the choice and its use, which may be seconds,
 * a connection that begins meanwhile must not be given the same.
 */
const CHOSEN_FROM = { first: 20_000, last: 32_000 };

/** @returns a port that nobody listened on a moment ago, and that this process is not given again soon */
export async function freePort(): Promise<number> {
	const { first, last } = CHOSEN_FROM;
	// From a random one on: several processes look at once.
	return await getPort({ host: HOST, port: getPort.makeRange(randomInt(first, last), last) });
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
