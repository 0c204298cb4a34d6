import type { INodeExecutionData } from 'n8n-workflow';

import { contextOfHook, TRIGGER_PATH } from '../../workflow/contexts';
import type { Row } from '../../workflow/n8n/database';
import { callerOf } from '../../workflow/n8n/nodes';
import { uploadedId } from '../../workflow/n8n/uploads';
import { SECOND_NODE } from '../history';
import type { N8n } from './n8n';
import type { ACTS } from '../troubles';
import { forge } from './stranger';
import { MCP, referenceOf } from './workflow';
import type { World } from './world';

const isOfUser = ({ start }: Row) => start === 'Start';

/** What users do with n8n. */
export class User {
	private asked = 0;

	constructor(private readonly world: World) {}

	private get n8n(): N8n {
		return this.world.n8n;
	}

	start(): Row {
		const ask = ++this.asked;
		const items = Array.from({ length: this.world.history.node.items }, (_, index) => {
			const name = `ask ${ask}, item ${index}`;
			const second = `ask ${ask}, item ${index + SECOND_NODE}`;
			return { ...this.uploadOf(name), json: { prompt: name, second } };
		});
		this.world.trace(`user: starts the workflow with ${items.length} items (ask ${ask})`);
		const { node, workflow } = this.world.history;
		const isCalled = workflow === 'called' || workflow === 'hangs up';
		const trigger = workflow === 'hangs up' ? MCP : undefined;
		const mode = node.hasUploads ? 'webhook' : 'trigger';
		return this.n8n.executions.begin({
			...{ mode, items },
			...(isCalled
				? { start: 'Call', definition: callerOf('Start', trigger) }
				: { start: 'Start' }),
		});
	}

	/** A file of an item, if the items of this history bring files. */
	private uploadOf(name: string): Pick<INodeExecutionData, 'binary'> {
		if (!this.world.history.node.hasUploads) return {};
		const id = uploadedId(name.replaceAll(/\W+/g, '-'));
		this.n8n.files.set(id, `picture of ${name}`);
		const file = { id, data: 'filesystem-v2', mimeType: 'image/png', fileName: 'own.png' };
		return { binary: { file } };
	}

	/** Delivers the callbacks of all tasks once more. */
	redeliver(): void {
		const { n8n, world } = this;
		const items = world.service.tasks
			.filter(({ webhookUrl }) => webhookUrl?.includes(TRIGGER_PATH))
			.map(({ id, item }) => {
				const reference = world.history.node.hasReferences ? referenceOf(item) : '';
				return { json: { taskId: id, reference } };
			});
		if (items.length === 0) return;
		world.note('redelivered by the user');
		world.trace(`user: redelivers ${items.length} tasks`);
		n8n.executions.begin({ mode: 'trigger', start: 'Again', items });
	}

	stop(match = isOfUser): void {
		const isGoingOn = ({ status }: Row) => status === 'running' || status === 'waiting';
		const row = this.n8n.rows.findLast((candidate) => isGoingOn(candidate) && match(candidate));
		if (!row) return;
		this.world.note('stopped by the user');
		this.n8n.executions.stop(row);
	}

	act(what: (typeof ACTS)[number]): void {
		const { world, n8n } = this;
		const { time } = world;
		switch (what) {
			case 'stop':
				return this.stop();
			case 'retry':
				return void this.retry();
			case 'retry what sleeps': {
				const row = n8n.rows.findLast((one) => isOfUser(one) && one.status === 'waiting');
				// n8n's API allows it.
				if (row && n8n.executions.retry(row)) world.note('retried while asleep');
				return;
			}
			case 'stop and retry':
				this.stop();
				return void time.later(1_000, () => this.retry());
			case 'start':
				world.note('started again by the user');
				return void this.start();
			case 'redeliver':
				return this.redeliver();
			case 'switch off':
				world.note('workflow switched off');
				this.activate(false);
				return void time.later(20_000, () => this.activate(true));
			case 'forge':
				return forge(world);
			case 'edit':
				world.note('trigger edited');
				world.trace('user: breaks an expression of the trigger');
				n8n.isTriggerBroken = true;
				return void time.later(10_000, () => {
					world.trace('user: mends the expression');
					n8n.isTriggerBroken = false;
				});
		}
	}

	/** Retries the execution that failed last. */
	retry(match = isOfUser, workflow: 'original' | 'saved' = 'original'): boolean {
		const row = this.n8n.rows.findLast(
			(candidate) =>
				['error', 'canceled', 'crashed'].includes(candidate.status) &&
				candidate.retriedBy === undefined &&
				match(candidate),
		);
		if (!row || !this.n8n.executions.retry(row, workflow)) return false;
		if (this.world.history.retriesTwice && isOfUser(row)) {
			this.world.note('two retries at once');
			this.n8n.executions.retry(row, workflow);
		}
		this.world.note(`retried by the user (${workflow} workflow)`);
		return true;
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
			const hook = contextOfHook(workflow, 'Trigger', data, what);
			const methods = main.loaded.nodes.mediaGenerationTrigger?.webhookMethods?.default;
			if (isActive) await methods?.create?.call(hook);
			else await methods?.delete?.call(hook);
			const staticData = JSON.stringify(workflow.staticData);
			await n8n.database.query(() => Object.assign(n8n, { staticData, isActive }));
		});
	}
}
