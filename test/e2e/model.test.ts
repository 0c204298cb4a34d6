import { randomUUID } from 'node:crypto';
import { resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import type { IConnections, IDataObject } from 'n8n-workflow';

import { type ExecutionSummary, until } from '../n8n/client';
import { shortMinute } from '../n8n/settings';
import { itemOf } from '../simulation/world/service';
import {
	PAUSE_MS,
	type Condition,
	type Deed,
	type ExecutionTrace,
	hasKill,
	kindOf,
	makeTrace,
	outOf,
	stories,
	type Story,
	type StoryTrace,
	type TaskOfStory,
	tell,
} from '../simulation/stories';
import { NodeSources } from '../simulation/world/nodeSources';
import { needing } from './needs';
import { itemsNode, node, Stage } from './stage';

/**
 * The simulation's model of n8n against n8n: the same short stories happen in both, and both must tell the same of
 * them. All of them happen at the same time, on an n8n whose minutes are short.
 */

const sources = new NodeSources(resolve(__dirname, '../..'));

const MINUTE = 60_000;

/** The longest story waits for two of n8n's looks, one after the other. */
const LONGEST_MS = 3.5 * MINUTE;

const LOOK_EVERY_MS = 2_500;

/** Long enough for all that a story does before its first check, and for n8n to come up before the first check. */
const MINUTE_HERE = 20_000;

/** Longer than the test: n8n never looks for what is due. */
const NO_LOOKS = 15 * MINUTE;

/** A story on a real n8n. */
class RealStory {
	private workflowId = '';

	private path = '';

	constructor(
		private readonly stage: Stage,
		private readonly story: Story,
	) {}

	/** Makes the workflow of the model, of n8n's own nodes but for ours, and starts it. */
	async start(): Promise<void> {
		const { stage, story } = this;
		this.path = randomUUID();
		const items = story.tasks.map((task, index) => ({
			prompt: `ask 1, item ${index}`,
			simulate: switchesOf(task),
			story: story.title,
		}));
		const { onError, maxTries = 1, timeoutSeconds = 600, suspendAfter } = story.node ?? {};
		const to = (name: string) => [{ node: name, type: 'main' as const, index: 0 }];
		const connections: IConnections = {
			Start: { main: [to('Prompts')] },
			Prompts: { main: [to('Media')] },
			Media: { main: [to('Sink'), to('Failed')] },
			Trigger: { main: [to('Done')] },
		};
		const nothing = (name: string) => node('n8n-nodes-base.noOp', name, {});
		const webhook = node(
			'n8n-nodes-base.webhook',
			'Start',
			{ httpMethod: 'POST', path: this.path, options: {} },
			2,
		);
		const trigger = stage.mediaNode('mediaGenerationTrigger', 'Trigger', {
			events: ['SUCCESS', 'FAILURE'],
		});
		const { id } = await stage.client.createWorkflow({
			name: story.title,
			nodes: [
				{ ...webhook, webhookId: this.path },
				itemsNode('Prompts', items),
				stage.mediaNode(
					'mediaGeneration',
					'Media',
					{
						resource: 'image',
						operation: 'generate',
						prompt: '={{ $json.prompt }}',
						completion: story.completion,
						callbackUrl: '',
						options: {
							pollInterval: 2,
							...(suspendAfter !== undefined && { suspendAfter }),
							timeout: timeoutSeconds,
							additionalInput: '={{ { simulate: $json.simulate, story: $json.story } }}',
						},
					},
					{
						onError: onError ?? 'stopWorkflow',
						...(maxTries > 1 && { retryOnFail: true, maxTries, waitBetweenTries: 1_000 }),
					},
				),
				nothing('Sink'),
				nothing('Failed'),
				trigger,
				nothing('Done'),
			],
			connections,
		});
		this.workflowId = id;
		await stage.client.publish(id, [
			`/webhook/${this.path}`,
			stage.client.webhookPath(trigger, 'callback'),
		]);
		const answer = await fetch(`${stage.webhookUrl}/webhook/${this.path}`, { method: 'POST' });
		expect(answer.status).toBe(200);
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

	private async runs(): Promise<ExecutionSummary[]> {
		const all = await this.executions();
		return all.filter(({ mode }, index) => index === 0 || mode === 'retry');
	}

	private async holds(condition: Condition): Promise<boolean> {
		const [what, count = ''] = condition.split(' ');
		if (what === 'created') return this.tasks().length >= Number(count);
		const all = await this.executions();
		switch (what) {
			case 'started':
				return all.slice(1).filter(isTriggered).filter(hasEnded).length >= Number(count);
			case 'suspended':
				return (await this.runs()).at(-1)?.status === 'waiting';
			case 'asleep':
				return all.filter(isSub).filter(({ status }) => status === 'waiting').length === 2;
			default:
				return all.length > 0 && (await this.runs()).every(hasEnded);
		}
	}

	private async perform(deed: Deed): Promise<void> {
		const { client } = this.stage;
		const run = (await this.runs()).at(-1)?.id ?? '';
		const [supervisor, checker] = (await this.executions()).filter(isSub);
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
			case 'stop supervisor':
				return await client.stopExecution(supervisor?.id ?? '');
			case 'stop checker':
				return await client.stopExecution(checker?.id ?? '');
			default:
				throw new Error(`Not done by itself: ${deed}`);
		}
	}

	/**
	 * @param log the statuses of all executions
	 * @returns what has happened up to now
	 */
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
		return makeTrace(
			this.tasks().map(({ record }) => itemOf(record)),
			executions,
		);
	}
}

const isSub = ({ mode }: ExecutionSummary) => mode === 'integrated';
const isTriggered = ({ mode }: ExecutionSummary) => mode === 'webhook';
const hasEnded = ({ status }: ExecutionSummary) => !['new', 'running', 'waiting'].includes(status);

function switchesOf({ ms, fails, callback, create }: TaskOfStory): IDataObject {
	return {
		latencyMs: ms,
		...(fails && { outcome: 'FAILURE' }),
		...(callback === 'lost' && { callbackLost: true }),
		...(callback === 'doubled' && { callbackCopies: 2 }),
		...(create === 'answer lost' && { createLost: { times: 1 } }),
		...(create === '401' && { createStatus: { status: 401, times: 1 } }),
		...(create === '429 with Retry-After' && {
			createStatus: { status: 429, times: 1, retryAfter: 7 },
		}),
	};
}

/** From now on n8n's database notes each status that an execution takes. */
async function noteStatuses({ database }: Stage): Promise<void> {
	const note = 'insert into noted (execution, status) values (new.id, new.status)';
	await database.execute(
		`create table noted (number ${database.numbering}, execution integer, status text)`,
	);
	await database.at('noted_first', 'after insert on execution_entity', '1 = 1', note);
	const changes = 'old.status <> new.status';
	await database.at('noted_next', 'after update on execution_entity', changes, note);
}

async function statusLog({ database }: Stage): Promise<Map<number, string[]>> {
	const log = new Map<number, string[]>();
	for (const { execution, status } of await database.rows('select * from noted order by number')) {
		const id = Number(execution);
		log.set(id, [...(log.get(id) ?? []), String(status)]);
	}
	return log;
}

const afterKill = ({ steps = [] }: Story) =>
	steps.slice(steps.findIndex(([, what]) => what === 'kill') + 1);

const told = new Map<Story, StoryTrace>();

/** Lets stories happen on one n8n, side by side. */
async function happen(list: Story[]): Promise<void> {
	const isKilled = list.some(hasKill);
	// However long the stories take to begin: n8n checks none before it is killed.
	const stage = await Stage.open(shortMinute(isKilled ? NO_LOOKS : MINUTE_HERE));
	try {
		await noteStatuses(stage);
		const real = list.map((story) => ({ story, run: new RealStory(stage, story) }));
		const ways: Array<Promise<void>> = [];
		// What becomes of a story that cannot go on says the comparison.
		const goOn = async (run: RealStory, steps: Story['steps']) =>
			await run.go(steps).catch((error: unknown) => console.error(error));
		for (const { story, run } of real) {
			await run.start();
			const way = goOn(run, story.steps);
			ways.push(way);
			// All of them are to have come so far when n8n is killed.
			if (isKilled) await way;
		}
		if (isKilled) {
			await sleep(PAUSE_MS);
			await stage.kill();
			await stage.restart(shortMinute(MINUTE_HERE));
			for (const { story, run } of real) ways.push(goOn(run, afterKill(story)));
		}
		await Promise.all(ways);
		// Where one does not become what the model has told, the comparison says what differs.
		const latest = Date.now() + LONGEST_MS;
		const isToldAlike = async () => {
			const log = await statusLog(stage);
			for (const { story, run } of real) told.set(story, await run.trace(log));
			return real.every(({ story }) => isDeepStrictEqual(told.get(story), modelled.get(story)));
		};
		while (Date.now() < latest && !(await isToldAlike())) await sleep(LOOK_EVERY_MS);
		// Nothing more is to come after that.
		await sleep(LOOK_EVERY_MS);
		await isToldAlike();
	} finally {
		await stage.close();
	}
}

const modelled = new Map<Story, StoryTrace>();

const { describe: describeStories } = needing('endOfSubExecutions', "The model's stories");

describeStories('the model and n8n tell the same', () => {
	beforeAll(async () => {
		for (const story of stories) modelled.set(story, await tell(story, sources));
		const parts = [stories.filter((story) => !hasKill(story)), stories.filter(hasKill)];
		await Promise.all(parts.map(happen));
	}, 900_000);

	test.each(stories)('$title', (story) => {
		expect(told.get(story)).toEqual(modelled.get(story));
	});
});
