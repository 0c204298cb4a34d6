import { contextOfWebhook, TRIGGER_PATH } from '../../workflow/contexts';
import { type Express, expressOf, FakeResponse } from '../../workflow/express';
import type { Process } from '../../workflow/n8n/process';
import type { World } from './world';

/** The trigger's address, which is called from outside. */
export class Webhooks {
	private received = 0;
	private taken = 0;

	constructor(private readonly world: World) {}

	/**
	 * A request comes in.
	 *
	 * @param answer called with the answer, if there is one
	 */
	receive(
		url: URL,
		body: unknown,
		answer: (status: number, body: unknown) => void,
		headers: Record<string, unknown> = {},
	): void {
		const { history, time } = this.world;
		const { processes, isActive } = this.world.n8n;
		const doors = processes.living(history.n8n === 'queue mode' ? 'webhook' : 'main');
		// As a load balancer does it.
		const process = doors[this.received++ % doors.length];
		if (!process) {
			time.later(1, () => answer(502, { message: 'Bad gateway' }));
			return;
		}
		if (!isActive || url.pathname !== TRIGGER_PATH) {
			time.later(1, () => answer(404, { message: 'The requested webhook is not registered' }));
			return;
		}
		processes.within(process, `webhook call ${++this.taken}`, async () => {
			const response = new FakeResponse(({ statusCode, body: said }) => {
				if (!process.effect()) return;
				time.later(1, () => answer(statusCode, said));
				time.schedule(1, () => response.end());
			});
			const express = expressOf(requestOf(url, body, headers), response);
			try {
				await this.admit(process, express, response);
			} catch (error) {
				this.world.trace(`${process.name}: the webhook fails: ${String(error)}`);
				response.status(500).json({ message: 'Error in workflow' });
			}
		});
	}

	/** A call of the trigger's address. */
	private async admit(process: Process, express: Express, response: FakeResponse): Promise<void> {
		const { n8n } = this.world;
		const workflow = n8n.workflow(process);
		const data = { ...n8n.additionalData(process, 'none', 'webhook'), ...express };
		const context = contextOfWebhook(workflow, 'Trigger', data, 'webhook');
		const result = await process.loaded.nodes.mediaGenerationTrigger?.webhook?.call(context);
		const items = result?.workflowData?.[0];
		if (!items) return;
		const row = await n8n.database.query(() =>
			n8n.executions.begin({ mode: 'webhook', start: 'Trigger', items }, process),
		);
		// n8n answers when the execution has its place.
		if (process.places.isLimited) await n8n.time.wait<void>((go) => (row.whenPlaced = go));
		response.status(200).json(result.webhookResponse);
	}
}

function requestOf(url: URL, body: unknown, given: Record<string, unknown>) {
	const headers = Object.entries(given).map(([name, value]) => [name.toLowerCase(), value]);
	return {
		path: url.pathname + url.search,
		query: Object.fromEntries(url.searchParams),
		body,
		headers: {
			...Object.fromEntries(headers),
			host: url.host,
			'content-length': String(Buffer.byteLength(JSON.stringify(body))),
		},
	};
}
