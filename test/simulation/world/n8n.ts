import type { ICredentialsHelper, IDataObject, INodeExecutionData } from 'n8n-workflow';

import { HOUR } from '../../durations';
import { credentialsHelper } from '../../workflow/credentials';
import { type Definition, isTerminal, type Row } from '../../workflow/n8n/database';
import { MemoryN8n } from '../../workflow/n8n/memoryN8n';
import type { Death, Loaded, Process } from '../../workflow/n8n/process';
import type { History } from '../history';
import type { NodeSources } from './nodeSources';
import { ProcessedData } from './processedData';
import { BASE_URL } from './service';
import { Webhooks } from './webhooks';
import { connectionsOf, helperNodes, MODEL, nodesOf, PRICE_USD } from './workflow';
import type { World } from './world';

/** What the rest of a workflow was started with. */
interface Sunk {
	at: number;
	execution: string;
	node: string;
	items: INodeExecutionData[];
}

/** How many executions run at once. */
const PLACES: Partial<Record<History['n8n'], number>> = { 'one place': 1, 'two places': 2 };

/** The n8n of a history, with the history's troubles. */
export class N8n extends MemoryN8n {
	readonly webhooks: Webhooks;
	readonly ledger: ProcessedData;
	readonly sunk: Sunk[] = [];

	/** The credential as users have entered it. */
	credential: { baseUrl: string; apiKey: string; models?: IDataObject };

	/** What a task costs, US dollars. */
	priceUsd = PRICE_USD;

	/** How many executions there were when the price was raised. */
	private raisedAfter = Infinity;

	/** What a task cost when an execution began, US dollars. */
	priceIn({ id }: Row): number {
		return Number(id) > this.raisedAfter ? this.priceUsd : PRICE_USD;
	}

	override isActive = false;

	/** The uploaded files, by their ids. */
	readonly files = new Map<string, string>();

	/** Whether the user has changed the node so that the service takes every item. */
	isMended = false;

	/** Whether an expression of the trigger throws. */
	isTriggerBroken = false;

	private hasSlept = false;

	constructor(
		private readonly world: World,
		private readonly sources: NodeSources,
	) {
		const { n8n, slowestQueryMs, limitSeconds } = world.history;
		const isQueueMode = n8n === 'queue mode';
		const productionLimit = PLACES[n8n] ?? Infinity;
		super(world.time, world.random, {
			...{ isQueueMode, slowestQueryMs, productionLimit, storesLateMs: 0, erasesStalled: true },
		});
		if (limitSeconds > 0) this.settings = { executionTimeout: limitSeconds };
		this.ledger = new ProcessedData(world);
		this.webhooks = new Webhooks(world);
		this.credential = { baseUrl: BASE_URL, apiKey: world.service.key };
	}

	/** The price of a task is another one from now on. */
	setPrice(priceUsd: number): void {
		this.priceUsd = priceUsd;
		this.raisedAfter = this.rows.length;
		const rows = [{ id: MODEL, priceUsd, unit: 'task' }];
		this.credential = { ...this.credential, models: { model: rows } };
	}

	load(): Loaded {
		const { credential, ...nodes } = this.sources.load();
		const helpers = helperNodes((...sunk) => this.sink(...sunk));
		const startOfSub = { 'n8n-nodes-base.executeWorkflowTrigger': helpers.start };
		return { nodes: { ...nodes, ...helpers, ...startOfSub }, credential };
	}

	get definition(): Definition {
		const { history } = this.world;
		const nodes = nodesOf(history, { isBroken: this.isTriggerBroken, isMended: this.isMended });
		return { nodes, connections: connectionsOf(history) };
	}

	override storedDefinition(start: string): Definition | undefined {
		return start === 'Start' ? this.definition : undefined;
	}

	override rename(from: string, to: string): void {
		const content = this.files.get(from);
		if (content === undefined) return;
		this.files.delete(from);
		this.files.set(to, content);
		this.world.note('an uploaded file renamed');
	}

	override noteWake(row: Row, wakeAgain: () => void): void {
		const { doubleWakes } = this.world.history;
		if (row.start !== 'Start') return;
		for (const { nth, afterMs } of doubleWakes) {
			if (nth === row.wakes) this.world.time.later(afterMs, wakeAgain);
		}
	}

	protected credentials({ loaded }: Process): ICredentialsHelper {
		const lookUp = async () => await this.database.query(() => ({ ...this.credential }));
		return credentialsHelper(loaded.credential!, lookUp);
	}

	deathOf(name: string, boots: number): Death | undefined {
		const { world } = this;
		const { names } = this.processes;
		const kills = world.history.kills.filter(
			({ process }) => names[process % names.length] === name,
		);
		const kill = kills[boots];
		if (!kill) return undefined;
		const isCounted = {
			anything: () => world.isTroubled,
			callbacks: () => world.isTroubled && this.isOf(({ start }) => start === 'Trigger'),
			'later turns': () => this.isOfRun(({ wakes }) => wakes > 0),
			retries: () => this.isOfRun(({ retryOf }) => retryOf !== undefined),
			orders: (isCreate: boolean) => isCreate && this.isOfRun(({ wakes }) => wakes > 0),
		};
		return { ...kill, counts: isCounted[kill.of] };
	}

	/** Whether what happens at present belongs to such an execution, or is a callback that starts one. */
	private isOf(match: (row: Pick<Row, 'start'> & Partial<Row>) => boolean): boolean {
		const [kind, id = ''] = this.world.time.activity.name.split(' ');
		return match(kind === 'webhook' ? { start: 'Trigger' } : (this.row(id) ?? { start: '' }));
	}

	/** Whether it belongs to such an execution of the user's workflow. */
	private isOfRun(match: (row: Row) => boolean): boolean {
		return this.isOf((row) => row.start === 'Start' && match(row as Row));
	}

	trace(line: string): void {
		this.world.trace(line);
	}

	note(fault: string): void {
		this.world.note(fault);
	}

	override newToken(): string {
		const token = super.newToken();
		this.world.service.secrets.add(token);
		return token;
	}

	/** A run goes to sleep for the first time: what the history has for this moment happens. */
	noteSleep(row: Row): void {
		const { world } = this;
		if (row.start !== 'Start' || this.hasSlept) return;
		this.hasSlept = true;
		for (const { afterMs, what } of world.history.sleeps) {
			world.time.later(afterMs, () => {
				world.note(`${what} while a run goes to sleep`);
				if (what === 'tasks end') world.service.endAll();
				else if (what === 'kill') row.process?.die();
				else if (what === 'stop') world.user.stop((one) => one === row);
				else world.setClock(what === 'clock set back' ? -HOUR : HOUR);
			});
		}
	}

	/** How often each task has started the workflow of the trigger. */
	starts(taskId: string): number {
		return this.sunk
			.filter(({ node }) => node === 'Done')
			.flatMap(({ items }) => items.filter(({ json }) => json.taskId === taskId)).length;
	}

	/** Whether an execution that a task's callback began has not come to its end, and none is under way. */
	hasBroken(taskId: string): boolean {
		const begun = this.rows.filter(
			({ start, begin }) => start === 'Trigger' && begin.includes(taskId),
		);
		return (
			begun.every(({ status }) => isTerminal(status)) &&
			begun.some(({ status }) => status !== 'success')
		);
	}

	/** The rest of a workflow begins: something is posted, a customer gets a mail. */
	private sink(node: string, execution: string, items: INodeExecutionData[]): void {
		const { activity, now } = this.world.time;
		if (activity.process && !activity.process.effect()) return;
		this.sunk.push({ at: now, execution, node, items });
		this.world.trace(`n8n: execution ${execution} comes to ${node} with ${items.length} items`);
	}
}
