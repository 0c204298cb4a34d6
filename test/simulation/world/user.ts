import type { INodeExecutionData, IRunExecutionData } from 'n8n-workflow';

import { contextOfHook } from '../../workflow/contexts';
import { dataOfRetry, fromStored, toStored } from '../../workflow/stored';
import type { Row } from './database';
import { Part } from './part';
import { itemOf } from './service';
import { referenceOf, TRIGGER_PATH } from './workflow';

const isOfUser = ({ start }: Row) => start === 'Start';

/** What users do with n8n. */
export class User extends Part {
	/** How often an item was asked for, by its name. */
	readonly asks = new Map<string, number>();

	private asked = 0;

	/** @param more what the items have beside their prompts */
	start(more: Array<Partial<INodeExecutionData>> = []): void {
		const ask = ++this.asked;
		const items = Array.from({ length: this.world.history.node.items }, (_, index) => {
			const name = `ask ${ask}, item ${index}`;
			this.asks.set(name, 1);
			return { ...more[index], json: { prompt: name, ...more[index]?.json } };
		});
		this.world.trace(`user: starts the workflow with ${items.length} items (ask ${ask})`);
		this.n8n.runner.begin({ mode: 'trigger', start: 'Start', items });
	}

	/** Delivers the callbacks of all tasks once more. */
	redeliver(): void {
		const { n8n, world } = this;
		const items = world.service.tasks
			.filter(({ webhookUrl }) => webhookUrl?.includes(TRIGGER_PATH))
			.map(({ id, item }) => {
				const reference = world.history.hasReferences ? referenceOf(item) : '';
				return { json: { taskId: id, reference } };
			});
		if (items.length === 0) return;
		world.note('redelivered by the user');
		world.trace(`user: redelivers ${items.length} tasks`);
		n8n.runner.begin({ mode: 'trigger', start: 'Again', items });
	}

	stop(match = isOfUser): void {
		const { world } = this;
		const { database, processes, runner } = this.n8n;
		const isGoingOn = ({ status }: Row) => status === 'running' || status === 'waiting';
		const row = this.n8n.rows.findLast((candidate) => isGoingOn(candidate) && match(candidate));
		const [main] = processes.living('main');
		if (!row || !main) return;
		world.note('stopped by the user');
		world.trace(`user: stops execution ${row.id}`);
		processes.within(main, `stop of ${row.id}`, async () => {
			const stored = await database.query(() => row.data);
			if (!isGoingOn(row)) return;
			const { process } = row;
			if (process && !process.isDead) {
				processes.within(process, `execution ${row.id}`, async () => {
					process.running.get(row.id)?.cancel();
				});
			}
			const data = fromStored(stored);
			const extra = { executionId: row.id };
			const error = { message: 'The execution was cancelled manually', extra };
			data.resultData.error = { ...error, timestamp: world.time.wall } as never;
			await database.query(() => {
				row.data = toStored(data);
				runner.end(row, 'canceled');
			});
		});
	}

	/** Retries the execution that failed last. */
	retry(match = isOfUser): boolean {
		const { processes, runner } = this.n8n;
		const row = this.n8n.rows.findLast(
			(candidate) =>
				['error', 'canceled', 'crashed'].includes(candidate.status) &&
				candidate.retriedBy === undefined &&
				match(candidate),
		);
		if (!row || !processes.living('main')[0]) return false;
		const data = dataOfRetry(row.data);
		if (!data.executionData?.nodeExecutionStack[0]) return false;
		this.world.note('retried by the user');
		this.noteAsked(row, data);
		const { start, id: retryOf } = row;
		row.retriedBy = runner.store({ mode: 'retry', start, data: toStored(data), retryOf }).id;
		this.world.trace(`user: retries execution ${row.id} as ${row.retriedBy}`);
		return true;
	}

	/**
	 * Of an execution that was stopped or killed n8n may have kept nothing but its beginning. And where an expression
	 * gives something else each time, who retries by hand asks for another picture.
	 */
	private noteAsked(row: Row, data: IRunExecutionData): void {
		const [next] = data.executionData?.nodeExecutionStack ?? [];
		const { node, tellsRetried } = this.world.history;
		const { isChanging } = node;
		const keptNothing = isSame(data, fromStored(row.begin));
		const name = next?.node.name;
		// Its retry is refused.
		if (tellsRetried && row.events.has('Media') && (row.isKilled || keptNothing)) return;
		if (name !== 'Start' && (name !== 'Media' || !(isChanging || keptNothing))) return;
		for (const { json } of next?.data.main?.[0] ?? []) {
			const item = itemOf(json);
			this.asks.set(item, (this.asks.get(item) ?? 0) + 1);
		}
	}

	activate(isActive: boolean): void {
		const { n8n } = this;
		const [main] = n8n.processes.living('main');
		if (!main) return;
		this.world.trace(`user: switches the workflow ${isActive ? 'on' : 'off'}`);
		n8n.processes.within(main, 'activation', async () => {
			const workflow = n8n.workflow(main);
			const data = n8n.additionalData(main, 'activation', 'trigger');
			const what = isActive ? 'activate' : 'update';
			const hook = contextOfHook(workflow, 'Trigger', TRIGGER_PATH, data, what);
			const methods = main.nodes.mediaGenerationTrigger.webhookMethods?.default;
			if (isActive) await methods?.create?.call(hook);
			else await methods?.delete?.call(hook);
			const staticData = JSON.stringify(workflow.staticData);
			await n8n.database.query(() => Object.assign(n8n, { staticData, isActive }));
		});
	}
}

/** Whether an execution knows of nothing that the other one does not know. */
const isSame = (one: IRunExecutionData, other: IRunExecutionData): boolean =>
	JSON.stringify(one.executionData?.contextData) ===
	JSON.stringify(other.executionData?.contextData);
