import { createServer, connect, type Server, type Socket } from 'node:net';

import { freePort, HOST } from '../n8n/ports';
import { until } from '../n8n/until';

/** What becomes of the words at which a wire is cut: they do not arrive; or they arrive, and the answer is lost. */
export type Fate = 'words lost' | 'answer lost';

/** A wire to a server on this machine, which can be cut. */
export class Wire {
	private readonly sockets = new Set<Socket>();
	private watch: { isHere: (words: string) => boolean; fate: Fate } | undefined;
	isCut = false;

	private constructor(
		readonly port: number,
		private readonly server: Server,
	) {}

	/** @param to the port of the server */
	static async to(to: number): Promise<Wire> {
		const server = createServer();
		const port = await freePort();
		const wire = new Wire(port, server);
		server.on('connection', (socket) => wire.lead(socket, to));
		await new Promise<void>((resolve) => server.listen(port, HOST, resolve));
		return wire;
	}

	private lead(near: Socket, to: number): void {
		if (this.isCut) {
			near.destroy();
			return;
		}
		const far = connect(to, HOST);
		for (const [one, other] of [
			[near, far],
			[far, near],
		] as const) {
			this.sockets.add(one);
			one.on('error', () => undefined);
			one.on('close', () => {
				this.sockets.delete(one);
				other.destroy();
			});
		}
		far.on('data', (words) => near.write(words));
		near.on('data', (words) => {
			const { watch } = this;
			if (!watch?.isHere(words.toString('latin1'))) {
				far.write(words);
				return;
			}
			if (watch.fate === 'answer lost') {
				// The server does what it is told, though nobody hears of it.
				near.destroy();
				this.sockets.delete(far);
				far.removeAllListeners('data').resume().end(words);
			}
			this.cut();
		});
	}

	/** Cuts the wire when such words come along. */
	cutAt(isHere: (words: string) => boolean, fate: Fate = 'words lost'): void {
		this.watch = { isHere, fate };
	}

	async untilCut(timeoutMs: number): Promise<void> {
		await until('the wire to be cut', timeoutMs, () => this.isCut, 50);
	}

	/** Ends all connections, and lets in no others. */
	cut(): void {
		this.watch = undefined;
		this.isCut = true;
		for (const socket of this.sockets) socket.destroy();
	}

	mend(): void {
		this.isCut = false;
	}

	async close(): Promise<void> {
		this.cut();
		await new Promise((resolve) => this.server.close(resolve));
	}
}
