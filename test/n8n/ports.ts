import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';

export const HOST = '127.0.0.1';

/** @returns a port of 127.0.0.1 that nobody listened on a moment ago */
export async function freePort(): Promise<number> {
	return await listenOnce(0);
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

async function listenOnce(port: number): Promise<number> {
	const server = createServer();
	await new Promise<void>((resolve, reject) => {
		server.once('error', reject);
		server.listen(port, HOST, resolve);
	});
	const { port: got } = server.address() as AddressInfo;
	await new Promise((resolve) => server.close(resolve));
	return got;
}
