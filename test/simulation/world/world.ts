import { type History, TROUBLED_MS } from '../history';
import { N8n } from './n8n';
import type { NodeSources } from './nodeSources';
import { Network } from './network';
import type { Randomness } from './randomness';
import { Service } from './service';
import type { HistoryTime } from './time';
import { User } from './user';

/** A line of n8n's log. */
export interface LogLine {
	at: number;
	by: string;
	text: string;
}

/** Everything that one history happens in. */
export class World {
	readonly service: Service;

	readonly network: Network;

	readonly n8n: N8n;

	readonly user: User;

	/** Which faults have really happened. */
	readonly faults = new Set<string>();

	/** What was not as the contract wants it, since n8n allows no better. */
	readonly exceptions = new Set<string>();

	readonly lines: string[] = [];

	readonly logs: LogLine[] = [];

	/** By how much the wall clock was set forward in all, milliseconds. */
	setForwardMs = 0;

	/** By how much it was set back in all, milliseconds. */
	setBackMs = 0;

	/** Tasks that had not started the workflow of the trigger by themselves when the user came to look. */
	notMadeUpFor: string[] = [];

	constructor(
		readonly history: History,
		sources: NodeSources,
		readonly random: Randomness,
		readonly time: HistoryTime,
	) {
		this.service = new Service(this);
		this.network = new Network(this);
		this.n8n = new N8n(this, sources);
		this.user = new User(this);
		this.n8n.processes.start();
	}

	/** Whether faults still happen. */
	get isTroubled(): boolean {
		return this.time.now <= TROUBLED_MS;
	}

	/** Somebody sets the wall clock. */
	setClock(byMs: number): void {
		this.note(`clock set ${byMs < 0 ? 'back' : 'forward'}`);
		this.trace(`clock: is set by ${byMs / 1000} s`);
		this.time.moveWall(byMs);
		if (byMs < 0) this.setBackMs -= byMs;
		else this.setForwardMs += byMs;
	}

	/** Notes that a fault has happened. */
	note(fault: string): void {
		this.faults.add(fault);
	}

	/** Writes down what happens, for whoever replays the history. */
	trace(line: string): void {
		const seconds = (this.time.now / 1000).toFixed(3);
		this.lines.push(`${seconds.padStart(9)}  ${line}`);
	}

	log(level: string, text: string): void {
		const { process, name } = this.time.activity;
		if (process && !process.effect()) return;
		if (level === 'debug') return;
		this.logs.push({ at: this.time.now, by: name, text });
		this.trace(`${process?.name ?? 'n8n'}: logs "${text}"`);
	}
}
