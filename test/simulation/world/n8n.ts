import type { ICredentialsHelper, IDataObject, INodeExecutionData } from 'n8n-workflow';

import { HOUR } from '../../durations';
import { credentialsHelper } from '../../workflow/credentials';
import { type Definition, isTerminal, type Row } from '../../workflow/n8n/database';
import { MemoryN8n } from '../../workflow/n8n/memoryN8n';
import type { Death, Loaded, Process } from '../../workflow/n8n/process';
import type { SleepTrouble } from '../troubles';
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
		const { n8n, slowestQueryMs, slowStores } = world.history;
		const isQueueMode = n8n === 'queue mode';
		const [storesLateMs = 0] = slowStores;
		const erasesStalled = world.history.day.length > 0;
		super(world.time, world.random, {
			...{ isQueueMode, slowestQueryMs, storesLateMs, erasesStalled },
		});
		const { limitSeconds = 0 } = world.history.day[0] ?? {};
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
		const { credential, learnLook, ...nodes } = this.sources.load();
		// A process that is started anew has yet to learn it.
		if (this.world.history.day[0]?.isWarm && this.world.time.now === 0) learnLook();
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
		const { history, isTroubled, time } = this.world;
		const { names } = this.processes;
		if (!isTroubled && history.moreKills.length === 0) return undefined;
		const kills = [...history.kills, ...history.moreKills];
		const deaths = kills.filter(({ process }) => names[process % names.length] === name);
		const kill = deaths[boots];
		if (!kill) return undefined;
		const isCounted = {
			anything: () => true,
			callbacks: () => this.isOfCallback(time.activity.name),
			turns: () => this.isOfLaterTurn(time.activity.name),
			'first turns': () => this.isOfRun(({ wakes }) => wakes === 0),
			'later turns': () => this.isOfRun(({ wakes }) => wakes > 0),
			retries: () => this.isOfRun(({ retryOf }) => retryOf !== undefined),
			orders: (isCreate: boolean) => isCreate && this.isOfRun(({ wakes }) => wakes > 0),
		};
		const isLasting = history.moreKills.includes(kill as (typeof history.moreKills)[number]);
		const counts = (isCreate: boolean) =>
			(isLasting || this.world.isTroubled) && isCounted[kill.of](isCreate);
		return { ...kill, counts };
	}

	/** Whether what happens at present belongs to such an execution of the user's workflow. */
	private isOfRun(match: (row: Row) => boolean): boolean {
		const [kind, id = ''] = this.world.time.activity.name.split(' ');
		const row = kind === 'execution' ? this.row(id) : undefined;
		return row?.start === 'Start' && match(row);
	}

	/** Whether an activity is a callback, or the execution that a callback has started. */
	private isOfCallback(activity: string): boolean {
		const [kind, id = ''] = activity.split(' ');
		return kind === 'webhook' || this.row(id)?.start === 'Trigger';
	}

	/** Whether an activity is a turn of an execution that was asleep. */
	private isOfLaterTurn(activity: string): boolean {
		const [kind, id = ''] = activity.split(' ');
		return kind === 'execution' && (this.row(id)?.wakes ?? 0) > 0;
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
				if (!world.isTroubled) return;
				world.note(`${what} while a run goes to sleep`);
				this.happen(what, row);
			});
		}
	}

	private happen(what: SleepTrouble, row: Row): void {
		const { world } = this;
		if (what === 'tasks end') world.service.endAll();
		else if (what.startsWith('clock')) world.setClock(what === 'clock set back' ? -HOUR : HOUR);
		else world.endRun(row, what);
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
