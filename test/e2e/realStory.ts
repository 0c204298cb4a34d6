import { setTimeout as sleep } from 'node:timers/promises';
import type { IDataObject } from 'n8n-workflow';

import { type ExecutionSummary, hasEnded, until } from '../n8n/client';
import type { Condition, Deed, Story } from '../simulation/stories';
import {
	type ExecutionTrace,
	kindOf,
	makeTrace,
	outOf,
	PAUSE_MS,
	type StoryTrace,
} from '../simulation/tellStory';
import { itemOf } from '../simulation/world/service';
import { inARow, node, prompts, to, webhook } from './nodes';
import type { Stage } from './stage';

const MINUTE = 60_000;

/** A story on a real n8n. */
export class RealStory {
	private workflowId = '';

	constructor(
		private readonly stage: Stage,
		private readonly story: Story,
	) {}

	/** Makes the workflow of the model, of n8n's own nodes but for ours, and starts it. */
	async start(): Promise<void> {
		const { stage, story } = this;
		const { onError = 'stopWorkflow', maxTries = 1, suspendAfter } = story.node ?? {};
		const retries = { retryOnFail: true, maxTries, waitBetweenTries: 1_000 };
		const trigger = stage.mediaNode('mediaGenerationTrigger', 'Trigger', {
			events: ['SUCCESS', 'FAILURE'],
		});
		const media = stage.image(
			{
				completion: story.completion,
				options: {
					...(suspendAfter !== undefined && { suspendAfter }),
					timeout: story.node?.timeoutSeconds ?? 600,
					additionalInput: '={{ { simulate: $json.simulate, story: $json.story } }}',
				},
			},
			{ onError, ...(maxTries > 1 && retries) },
		);
		const fields = Array<IDataObject>(story.tasks.length).fill({ story: story.title });
		const orders = prompts('ask 1, item', story.tasks, fields);
		const row = inARow(webhook('Start'), orders, media);
		const ends = ['Sink', 'Failed', 'Done'].map((name) => node('n8n-nodes-base.noOp', name, {}));
		const { id, response } = await stage.callWebhook({
			name: story.title,
			// n8n registers the webhooks in this order.
			nodes: [trigger, ...row.nodes, ...ends],
			connections: {
				...row.connections,
				Media: { main: [...to('Sink'), ...to('Failed')] },
				Trigger: { main: to('Done') },
			},
		});
		this.workflowId = id;
		expect(response.status).toBe(200);
	}

	/** Lets the steps happen that are left, up to one that is a kill. */
	async go(steps: Story['steps'] = []): Promise<void> {
		for (const [when, what] of steps) {
			await until(`${this.story.title}: ${when}`, 3 * MINUTE, async () => await this.holds(when));
			if (what === 'kill') return;
			await this.perform(what);
		}
	}

	private tasks() {
		return [...this.stage.service.tasks.values()].filter(
			({ record }) => (record.input as IDataObject).story === this.story.title,
		);
	}

	/** Oldest first. */
	private async executions(): Promise<ExecutionSummary[]> {
		const all = await this.stage.client.listExecutions({ workflowId: this.workflowId });
		return all.sort((one, other) => Number(one.id) - Number(other.id));
	}

	private async holds(condition: Condition): Promise<boolean> {
		const [what, count = ''] = condition.split(' ');
		if (what === 'created') return this.tasks().length >= Number(count);
		const all = await this.executions();
		const runs = runsOf(all);
		switch (what) {
			case 'started':
				return all.slice(1).filter(isTriggered).filter(isOver).length >= Number(count);
			case 'suspended':
				return runs.at(-1)?.status === 'waiting';
			case 'asleep':
				return all.filter(isSub).some(({ status }) => status === 'waiting');
			default:
				return runs.length > 0 && runs.every(isOver);
		}
	}

	private async perform(deed: Deed): Promise<void> {
		const { client } = this.stage;
		const all = await this.executions();
		const run = runsOf(all).at(-1)?.id ?? '';
		const [check] = all.filter(isSub);
		switch (deed) {
			case 'stop':
				return await client.stopExecution(run);
			case 'retry':
				await sleep(PAUSE_MS);
				// n8n answers at the end of the retry.
				void client.retryExecution(run).catch(() => undefined);
				return await until('the retry', MINUTE, async () =>
					(await this.executions()).some(({ mode }) => mode === 'retry'),
				);
			case 'stop check':
				return await client.stopExecution(check?.id ?? '');
			default:
				throw new Error(`Not done by itself: ${deed}`);
		}
	}

	/** @returns what has happened up to now. @param log the statuses of all executions */
	async trace(log: Map<number, string[]>): Promise<StoryTrace> {
		const itemOfTask = (taskId: string) => itemOf(this.stage.service.tasks.get(taskId)?.record);
		const all = await this.executions();
		const executions = await Promise.all(
			all.map(async ({ id, mode }): Promise<ExecutionTrace> => {
				const { data } = await this.stage.client.getExecution(id);
				const { runData } = data.resultData;
				const first = data.executionData?.nodeExecutionStack[0]?.node.name;
				const start = runData.Trigger || first === 'Trigger' ? 'Trigger' : 'Start';
				const reached = ['Sink', 'Failed', 'Done'].flatMap((name) => {
					const items = runData[name]?.at(-1)?.data?.main?.[0];
					return items && items.length > 0 ? [[name, items] as const] : [];
				});
				return {
					kind: kindOf(mode, start),
					statuses: log.get(Number(id)) ?? [],
					out: outOf(reached, itemOfTask),
				};
			}),
		);
		const tasks = this.tasks().map(({ record }) => itemOf(record));
		return makeTrace(tasks, executions);
	}
}

const runsOf = (all: ExecutionSummary[]) =>
	all.filter(({ mode }, index) => index === 0 || mode === 'retry');
const isSub = ({ mode }: ExecutionSummary) => mode === 'integrated';
const isTriggered = ({ mode }: ExecutionSummary) => mode === 'webhook';
const isOver = ({ status }: ExecutionSummary) => hasEnded(status);
