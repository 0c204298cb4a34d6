import { setTimeout as sleep } from 'node:timers/promises';
import type { ExecutionStatus, INodeExecutionData, IRunExecutionData } from 'n8n-workflow';

import { N8nApiError, Session } from './session';
import type { Execution, ExecutionSummary } from './types';
import { until } from './until';

/** @returns whether nothing happens any more to an execution of this status; `waiting` is a suspended one */
export const hasEnded = (status: ExecutionStatus) =>
	!['new', 'running', 'waiting', 'unknown'].includes(status);

/** So long a look at the list of executions waits for others who want to look at it. */
const SHARE_WITHIN_MS = 100;

const RETRY_BEGINS_WITHIN_MS = 60_000;

/** What n8n's list of executions offers. */
export class Executions extends Session {
	private nextList: Promise<ExecutionSummary[]> | undefined;

	async stopExecution(id: string): Promise<void> {
		await this.send('POST', `/rest/executions/${id}/stop`);
	}

	/**
	 * Begins to retry an execution. n8n answers when the retry ends, or not at all if n8n is killed before.
	 *
	 * @param loadWorkflow whether with the currently saved workflow, and not with the workflow as it was then
	 * @returns the id of the new execution
	 */
	async retryExecution(id: string, loadWorkflow = false): Promise<string> {
		const retries = async () =>
			(await this.listExecutions()).filter(({ retryOf }) => String(retryOf) === id);
		const known = new Set((await retries()).map((retry) => retry.id));
		let refusal: unknown;
		// A retry that has ended, and that n8n does not keep, is in no list.
		let ended: ExecutionSummary | undefined;
		const sent = this.send<ExecutionSummary>('POST', `/rest/executions/${id}/retry`, {
			loadWorkflow,
		});
		sent.then(
			(retry) => (ended = retry),
			(error: unknown) => (refusal = error),
		);
		let begun: ExecutionSummary | undefined;
		await until(`the retry of execution ${id}`, RETRY_BEGINS_WITHIN_MS, async () => {
			begun = (await retries()).find((retry) => !known.has(retry.id)) ?? ended;
			if (begun === undefined && refusal !== undefined) throw refusal;
			return begun !== undefined;
		});
		return begun?.id ?? '';
	}

	/** @returns the latest executions, running and suspended ones among them, newest first; at most 100 */
	async listExecutions(
		filter: { workflowId?: string; status?: ExecutionStatus[] } = {},
	): Promise<ExecutionSummary[]> {
		const query = encodeURIComponent(JSON.stringify(filter));
		const { results } = await this.get<{ results: ExecutionSummary[] }>(
			`/rest/executions?limit=100&filter=${query}`,
		);
		// n8n lists those that run before the others.
		return results.sort((one, other) => Number(other.id) - Number(one.id));
	}

	async getExecution(id: string): Promise<Execution> {
		// n8n sends run data as flatted JSON; the library has types for ES modules only.
		const { parse } = await import('flatted');
		const path = `/rest/executions/${id}`;
		const execution = await this.get<(ExecutionSummary & { data: string }) | undefined>(path);
		if (execution === undefined) throw new Error(`n8n has no execution ${id}.`);
		return { ...execution, data: parse(execution.data) as IRunExecutionData };
	}

	/** Waits until an execution has come to its end, however it ended. */
	async waitForExecution(id: string, timeoutMs = 60_000): Promise<Execution> {
		return await this.waitForStatus(id, hasEnded, timeoutMs);
	}

	/** @throws where it ends instead of being suspended, or is not suspended in time */
	async waitForSuspension(id: string, timeoutMs = 60_000): Promise<Execution> {
		const isWanted = (status: ExecutionStatus) => status === 'waiting' || hasEnded(status);
		const execution = await this.waitForStatus(id, isWanted, timeoutMs);
		if (execution.status === 'waiting') return execution;
		throw new Error(`Execution ${id} was not suspended; it ended with ${describe(execution)}.`);
	}

	private async waitForStatus(
		id: string,
		wanted: (status: ExecutionStatus) => boolean,
		timeoutMs: number,
	): Promise<Execution> {
		let status: ExecutionStatus = 'unknown';
		await until(
			() => `execution ${id} to end, which is ${status}`,
			timeoutMs,
			async () => {
				status = await this.getStatus(id);
				return wanted(status);
			},
		);
		return await this.getExecution(id);
	}

	/** An execution's status by the list, which spares n8n loading its data. */
	private async getStatus(id: string): Promise<ExecutionStatus> {
		try {
			const latest = await this.listSoon();
			const listed = latest.find((execution) => execution.id === id);
			return (listed ?? (await this.getExecution(id))).status;
		} catch (error) {
			// n8n says so where it is too busy to hear from its database in time.
			if (error instanceof N8nApiError && error.status === 503) return 'unknown';
			throw error;
		}
	}

	/** The list of executions, asked for once for all who wait for one. It is never older than the question. */
	private async listSoon(): Promise<ExecutionSummary[]> {
		this.nextList ??= sleep(SHARE_WITHIN_MS).then(async () => {
			this.nextList = undefined;
			return await this.listExecutions();
		});
		return await this.nextList;
	}

	/** Waits until a workflow has so many finished executions. @returns all of its executions, newest first */
	async waitForExecutions(
		workflowId: string,
		count: number,
		timeoutMs = 60_000,
	): Promise<ExecutionSummary[]> {
		let executions: ExecutionSummary[] = [];
		await until(
			() =>
				`${count} finished executions of workflow ${workflowId}, which has ${executions.length}`,
			timeoutMs,
			async () => {
				executions = await this.listExecutions({ workflowId });
				return executions.filter(({ status }) => hasEnded(status)).length >= count;
			},
		);
		return executions;
	}
}

/** @returns the items that left a node in its last run; none where it did not run */
export function outputItems(execution: Execution, node: string, output = 0): INodeExecutionData[] {
	return execution.data.resultData.runData[node]?.at(-1)?.data?.main?.[output] ?? [];
}

/** @returns status, and message of the error where there is one, for an error's or a test's text */
export function describe({ status, data }: Pick<Execution, 'status' | 'data'>): string {
	const error = data.resultData.error;
	const description = error?.description ? ` (${error.description})` : '';
	return error ? `${status}: ${error.message}${description}` : status;
}
