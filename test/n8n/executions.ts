import { setTimeout as sleep } from 'node:timers/promises';
import type { ExecutionStatus, INodeExecutionData, IRunExecutionData } from 'n8n-workflow';

import { N8nApiError, Session } from './session';
import type { Execution, ExecutionSummary } from './types';
import { until } from './until';

/** Statuses of an execution that something still happens to. `waiting` is a suspended one. */
const UNFINISHED: ExecutionStatus[] = ['new', 'running', 'waiting', 'unknown'];

/** So long a look at the list of executions waits for others who want to look at it. */
const SHARE_WITHIN_MS = 100;

/** What n8n's list of executions offers. */
export class Executions extends Session {
	private nextList: Promise<ExecutionSummary[]> | undefined;

	/** Stops an execution, a suspended one too. */
	async stopExecution(id: string): Promise<void> {
		await this.send('POST', `/rest/executions/${id}/stop`);
	}

	/** Deletes an execution, a suspended one too. */
	async deleteExecution(id: string): Promise<void> {
		await this.send('POST', '/rest/executions/delete', { ids: [id] });
	}

	/**
	 * Retries an execution that ended in an error and waits for its end.
	 *
	 * @param id the execution to repeat
	 * @param useSavedWorkflow with the workflow as it is saved now, rather than as it was then
	 * @returns the id of the new execution
	 */
	async retryExecution(id: string, useSavedWorkflow = false): Promise<string> {
		const { id: retried } = await this.send<{ id: string }>(
			'POST',
			`/rest/executions/${id}/retry`,
			{ loadWorkflow: useSavedWorkflow },
		);
		return retried;
	}

	/** @returns the latest executions, running and suspended ones among them, newest first; at most 100 */
	async listExecutions(
		filter: { workflowId?: string; status?: ExecutionStatus[] } = {},
	): Promise<ExecutionSummary[]> {
		const query = encodeURIComponent(JSON.stringify(filter));
		const { results } = await this.get<{ results: ExecutionSummary[] }>(
			`/rest/executions?limit=100&filter=${query}`,
		);
		return results;
	}

	/** @returns an execution with the data of its nodes */
	async getExecution(id: string): Promise<Execution> {
		// n8n sends run data as flatted JSON; the library has types for ES modules only.
		const { parse } = await import('flatted');
		const execution = await this.get<(Omit<Execution, 'data'> & { data: string }) | undefined>(
			`/rest/executions/${id}`,
		);
		if (execution === undefined) throw new Error(`n8n has no execution ${id}.`);
		const { data, ...rest } = execution;
		return { ...rest, data: parse(data) as IRunExecutionData };
	}

	/**
	 * Waits until an execution has come to its end, however it ended.
	 *
	 * @param timeoutMs how long to wait, in ms
	 * @throws where it has not ended in time
	 */
	async waitForExecution(id: string, timeoutMs = 60_000): Promise<Execution> {
		return await this.waitForStatus(id, (status) => !UNFINISHED.includes(status), timeoutMs);
	}

	/**
	 * Waits until an execution is suspended.
	 *
	 * @param timeoutMs how long to wait, in ms
	 * @throws where it ends instead, or is not suspended in time
	 */
	async waitForSuspension(id: string, timeoutMs = 60_000): Promise<Execution> {
		const execution = await this.waitForStatus(
			id,
			(status) => status === 'waiting' || !UNFINISHED.includes(status),
			timeoutMs,
		);
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

	/**
	 * Waits until a workflow has a number of finished executions, e.g. of its trigger.
	 *
	 * @param timeoutMs how long to wait, in ms
	 * @returns all executions of the workflow, newest first
	 * @throws where there are fewer in time
	 */
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
				return executions.filter(({ status }) => !UNFINISHED.includes(status)).length >= count;
			},
		);
		return executions;
	}
}

/**
 * @param node name of a node
 * @param output index of its output
 * @param run which of its runs, in a loop; default: the last
 * @returns the items that left the node; none where it did not run
 */
export function outputItems(
	execution: Execution,
	node: string,
	output = 0,
	run = -1,
): INodeExecutionData[] {
	return execution.data.resultData.runData[node]?.at(run)?.data?.main?.[output] ?? [];
}

/** @returns status, and message of the error where there is one, for an error's or a test's text */
export function describe({ status, data }: Pick<Execution, 'status' | 'data'>): string {
	const error = data.resultData.error;
	const description = error?.description ? ` (${error.description})` : '';
	return error ? `${status}: ${error.message}${description}` : status;
}
