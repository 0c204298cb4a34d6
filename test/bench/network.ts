import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { Agent, request as httpsRequest } from 'node:https';
import { createServer as createHttpServer } from 'node:http';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { Transform } from 'node:stream';
import { createServer as createTlsServer } from 'node:tls';

import { HOST } from '../n8n/ports';

/** A way to a server: where it begins, and its end. */
export interface Way {
	port: number;
	/** Connections that were opened on it. */
	connections: () => number;
	close: () => void;
}

/** A certificate for 127.0.0.1, made for a day, in a folder of the caller's. */
export function makeCertificate(folder: string): { keyFile: string; certificateFile: string } {
	const keyFile = join(folder, 'key.pem');
	const certificateFile = join(folder, 'certificate.pem');
	const subject = [
		'-subj',
		'/CN=127.0.0.1',
		'-addext',
		'subjectAltName=IP:127.0.0.1',
		'-days',
		'1',
	];
	const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
	const files = ['-keyout', keyFile, '-out', certificateFile];
	execFileSync('openssl', ['req', '-x509', ...key, ...subject, ...files], { stdio: 'pipe' });
	return { keyFile, certificateFile };
}

/** Speaks TLS, and hands on what it hears in plain. */
export async function tlsBefore(
	port: number,
	files: ReturnType<typeof makeCertificate>,
): Promise<Way> {
	const options = { key: readFileSync(files.keyFile), cert: readFileSync(files.certificateFile) };
	return await open(createTlsServer(options, (socket) => pass(socket, port)));
}

/**
 * A network between a client and a server: each byte takes half the round trip, and a connection opens after a whole
 * one, as TCP needs it.
 *
 * @param roundTripMs milliseconds
 */
export async function networkBefore(port: number, roundTripMs: number): Promise<Way> {
	const server = createServer((socket) => {
		const far = connect(port, HOST);
		const there = new Delay(roundTripMs / 2, roundTripMs);
		const back = new Delay(roundTripMs / 2);
		socket.pipe(there).pipe(far);
		far.pipe(back).pipe(socket);
		endTogether(socket, far);
	});
	return await open(server);
}

/** A proxy beside n8n that keeps its connections to an HTTPS server: plain HTTP on n8n's side. */
export async function keepAliveBefore(port: number, certificateFile: string): Promise<Way> {
	const agent = new Agent({ keepAlive: true, ca: readFileSync(certificateFile), maxSockets: 500 });
	const server = createHttpServer((incoming, answer) => {
		const { method, url: path, headers } = incoming;
		const { connection: _ours, ...passedOn } = headers;
		const outgoing = httpsRequest(
			{ agent, host: HOST, port, method, path, headers: passedOn },
			(response) => {
				answer.writeHead(response.statusCode ?? 502, response.headers);
				response.pipe(answer);
			},
		);
		outgoing.on('error', () => answer.destroy());
		incoming.pipe(outgoing);
	});
	const way = await open(server);
	return {
		...way,
		close: () => {
			way.close();
			agent.destroy();
		},
	};
}

/** Holds back what goes through it. */
class Delay extends Transform {
	private isFirst = true;

	/** @param firstMs for the first bytes, on top */
	constructor(
		private readonly ms: number,
		private readonly firstMs = 0,
	) {
		super();
	}

	override _transform(
		chunk: Buffer,
		_encoding: string,
		done: (error: null, chunk: Buffer) => void,
	) {
		const ms = this.ms + (this.isFirst ? this.firstMs : 0);
		this.isFirst = false;
		setTimeout(() => done(null, chunk), ms);
	}
}

function pass(socket: Socket, port: number): void {
	const far = connect(port, HOST);
	socket.pipe(far);
	far.pipe(socket);
	endTogether(socket, far);
}

function endTogether(...sockets: Socket[]): void {
	for (const socket of sockets) {
		socket.setNoDelay(true);
		socket.on('error', () => sockets.forEach((each) => each.destroy()));
	}
}

async function open(server: Server): Promise<Way> {
	const sockets = new Set<Socket>();
	let count = 0;
	server.on('connection', (socket: Socket) => {
		count++;
		sockets.add(socket);
		socket.once('close', () => sockets.delete(socket));
	});
	await new Promise<void>((resolve) => server.listen(0, HOST, resolve));
	return {
		port: (server.address() as AddressInfo).port,
		connections: () => count,
		close: () => {
			server.close();
			for (const socket of sockets) socket.destroy();
		},
	};
}
