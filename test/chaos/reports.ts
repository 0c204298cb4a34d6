import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { INode } from 'n8n-workflow';

import { node } from '../e2e/stage';

/** What left the node for one item, as the node behind it sees it. */
export interface ReportedItem {
	taskId?: string;
	state?: string;
	timedOut?: boolean;
	/** What was sent, by which the place of the item is known. */
	prompt?: string;
}

/** One execution that reached the node behind ours. */
export interface Report {
	/** Milliseconds since 1970. */
	at: number;
	items: ReportedItem[];
}

const ITEMS =
	'$input.all().map(({ json }) => ({ taskId: json.taskId, state: json.state, timedOut: json.timedOut, prompt: (json.input || json.record.input).prompt }))';

/** The outside world of the workflows: each execution that goes on behind our nodes reports to it. */
export class Reports {
	readonly all: Report[] = [];

	private constructor(
		private readonly server: Server,
		private readonly port: number,
	) {}

	static async open(): Promise<Reports> {
		const server = createServer((request, response) => {
			const chunks: Buffer[] = [];
			request.on('data', (chunk: Buffer) => chunks.push(chunk));
			request.on('end', () => {
				const items = JSON.parse(Buffer.concat(chunks).toString()) as ReportedItem[];
				reports.all.push({ at: Date.now(), items });
				response.setHeader('content-type', 'application/json').end('{}');
			});
		});
		await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
		const reports = new Reports(server, (server.address() as AddressInfo).port);
		return reports;
	}

	/** A node that reports all items of its input at once. */
	node(name = 'Report'): INode {
		const parameters = {
			method: 'POST',
			url: `http://127.0.0.1:${this.port}/`,
			sendBody: true,
			specifyBody: 'json',
			jsonBody: `={{ JSON.stringify(${ITEMS}) }}`,
			options: {},
		};
		return { ...node('n8n-nodes-base.httpRequest', name, parameters, 4.2), executeOnce: true };
	}

	close(): void {
		this.server.close();
		this.server.closeAllConnections();
	}
}
