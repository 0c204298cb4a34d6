import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';

/**
 * Opens an HTTP server of a test on this machine.
 *
 * @param at the port; 0: any free one
 */
export async function listen(listener: RequestListener, at = 0) {
	const server = createServer(listener).listen(at, '127.0.0.1');
	await once(server, 'listening');
	const { port } = server.address() as AddressInfo;
	const close = async () => {
		server.closeAllConnections();
		await new Promise((resolve) => server.close(resolve));
	};
	return { url: `http://127.0.0.1:${port}`, port, close };
}

/** An open server of a test. */
export type Listening = Awaited<ReturnType<typeof listen>>;
