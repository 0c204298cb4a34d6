import getPort from 'get-port';
import { randomInt } from 'node:crypto';
import { createServer } from 'node:net';

export const HOST = '127.0.0.1';

/**
 * Below the ports that a system gives to whoever asks for any: between the choice and its use, which may be seconds,
 * a connection that begins meanwhile must not be given the same.
 */
const CHOSEN_FROM = { first: 20_000, last: 32_000 };

/**
 * @returns a port of 127.0.0.1 that nobody listened on a moment ago, and that this process is not given again soon
 */
export async function freePort(): Promise<number> {
	const { first, last } = CHOSEN_FROM;
	// From a random one on: several processes look at once.
	return await getPort({ host: HOST, port: getPort.makeRange(randomInt(first, last), last) });
}

/**
 * Makes sure that a port can be had, before anything is started on it.
 *
 * @param port the port of 127.0.0.1 in question
 * @param purpose what it is for, for the message
 * @throws where another program listens on it
 */
export async function assertPortFree(port: number, purpose: string): Promise<void> {
	try {
		await listenOnce(port);
	} catch (error) {
		const code = error instanceof Error && 'code' in error ? error.code : undefined;
		const reason =
			code === 'EADDRINUSE' ? 'is in use by another program' : `cannot be had (${code})`;
		throw new Error(
			`Port ${port} of ${HOST} ${reason}; ${purpose} needs it. Stop that program or choose another port.`,
			{ cause: error },
		);
	}
}

async function listenOnce(port: number): Promise<void> {
	const server = createServer();
	await new Promise<void>((resolve, reject) => {
		server.once('error', reject);
		server.listen(port, HOST, resolve);
	});
	await new Promise((resolve) => server.close(resolve));
}
