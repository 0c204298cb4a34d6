import type { IDataObject } from 'n8n-workflow';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

import { type Published, StandIn } from './standIns';

const PNG = Buffer.from(
	'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
	'base64',
);

/** A stand-in of a service that listens on this machine, and the host of its files, which listens elsewhere. */
export interface StandInServer {
	service: StandIn;
	/** The base URL. */
	url: string;
	/** The headers with which the files were asked for. */
	fileHeaders: Array<Record<string, unknown>>;
	close: () => void;
}

/** Starts a stand-in whose account has this key. */
export async function startStandIn(published: Published, key: string): Promise<StandInServer> {
	const fileHeaders: Array<Record<string, unknown>> = [];
	const files = createServer(({ headers }, response) => {
		fileHeaders.push(headers);
		response.writeHead(200, { 'content-type': 'image/png' }).end(PNG);
	});
	const listening = async (server: typeof files) =>
		await new Promise<string>((resolve) => {
			server.listen(0, '127.0.0.1', () => {
				resolve(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
			});
		});
	const file = { url: `${await listening(files)}/1.png`, bytes: PNG };
	const service = new StandIn(published, key, file);
	const server = createServer((request, response) => {
		const { method = 'GET', url = '/', headers } = request;
		let text = '';
		request.on('data', (part: Buffer) => (text += part.toString()));
		request.on('end', () => {
			const body = text === '' ? undefined : (JSON.parse(text) as IDataObject);
			const reply = service.answer(method, url, headers, body);
			const isFile = Buffer.isBuffer(reply.body);
			response.writeHead(reply.status, { 'content-type': 'application/json', ...reply.headers });
			response.end(isFile ? reply.body : JSON.stringify(reply.body));
		});
	});
	const url = await listening(server);
	const close = () => [server, files].forEach((each) => each.close());
	return { service, url, fileHeaders, close };
}
