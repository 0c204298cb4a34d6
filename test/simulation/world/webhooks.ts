import { contextOfWebhook } from '../../workflow/contexts';
import { type Express, expressOf, FakeResponse } from '../../workflow/express';
import { fromStored } from '../../workflow/stored';
import { Part } from './part';
import type { Process } from './process';
import { TRIGGER_PATH } from './workflow';

/** n8n's addresses that are called from outside: the trigger's, and those that resume a waiting execution. */
export class Webhooks extends Part {
	/** Waiting executions that a request to their address has had go on. */
	readonly woken: Array<{ at: number; execution: string }> = [];

	private received = 0;
	private taken = 0;

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
		const { processes, isActive } = this.n8n;
		const doors = processes.living(history.n8n === 'queue mode' ? 'webhook' : 'main');
		// As a load balancer does it.
		const process = doors[this.received++ % doors.length];
		if (!process) {
			time.later(1, () => answer(502, { message: 'Bad gateway' }));
			return;
		}
		const isResume = url.pathname.startsWith('/webhook-waiting/');
		if (!isResume && (!isActive || url.pathname !== TRIGGER_PATH)) {
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
				if (isResume) await this.admitResume(process, url, express, response);
				else await this.admit(process, express, response);
			} catch (error) {
				this.world.trace(`${process.name}: the webhook fails: ${String(error)}`);
				response.status(500).json({ message: 'Error in workflow' });
			}
		});
	}

	/** A call of the trigger's address. */
	private async admit(process: Process, express: Express, response: FakeResponse): Promise<void> {
		const workflow = this.n8n.workflow(process);
		const data = { ...this.n8n.additionalData(process, 'none', 'webhook'), ...express };
		const context = contextOfWebhook(workflow, 'Trigger', TRIGGER_PATH, data, 'webhook');
		const result = await process.nodes.mediaGenerationTrigger.webhook?.call(context);
		const items = result?.workflowData?.[0];
		if (!items) return;
		await this.n8n.database.query(() =>
			this.n8n.runner.begin({ mode: 'webhook', start: 'Trigger', items }, process),
		);
		response.status(200).json(result.webhookResponse);
	}

	/** A call of the address that resumes a waiting execution. */
	private async admitResume(
		process: Process,
		url: URL,
		express: Express,
		response: FakeResponse,
	): Promise<void> {
		const { database, waitTracker } = this.n8n;
		const [, , id = '', suffix = ''] = url.pathname.split('/');
		const row = this.n8n.row(id);
		if (!row) return void response.status(404).json({ message: 'No such execution' });
		const data = fromStored(await database.query(() => row.data));
		if (data.resumeToken !== url.searchParams.get('signature')) {
			return void response.status(401).json({ error: 'Invalid token' });
		}
		if (row.status !== 'waiting') {
			return void response.status(409).json({ message: `The execution is ${row.status} already` });
		}
		const [entry] = data.executionData?.nodeExecutionStack ?? [];
		const name = data.resultData.lastNodeExecuted ?? '';
		const workflow = this.n8n.workflow(process, row.definition);
		if (!entry || !workflow.getNode(name)) {
			return void response.status(404).json({ message: 'No node' });
		}
		entry.node.disabled = true;
		delete data.waitTill;
		data.resultData.runData[name]?.pop();
		const additional = { ...this.n8n.additionalData(process, id, row.mode), ...express };
		const context = contextOfWebhook(workflow, name, suffix, additional, row.mode, data);
		const result = await process.nodes.mediaGeneration.webhook?.call(context);
		if (!result?.workflowData) return;
		entry.data.main = result.workflowData;
		try {
			await waitTracker.resume(process, row, data);
		} catch {
			return void response.status(500).json({ message: 'already being resumed' });
		}
		this.woken.push({ at: this.world.time.now, execution: id });
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
