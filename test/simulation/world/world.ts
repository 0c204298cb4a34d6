import { type History, TROUBLED_MS } from '../history';
import type { Randomness } from '../../workflow/n8n/randomness';
import type { HistoryTime } from '../../workflow/n8n/time';
import { N8n } from './n8n';
import type { NodeSources } from './nodeSources';
import { Network } from './network';
import { Service } from './service';
import { User } from './user';

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

	/** What happened, for whoever replays the history. */
	readonly lines: string[] = [];

	/** n8n's log. */
	readonly logs: string[] = [];

	/** By how much the wall clock was set forward, and set back, in all, milliseconds. */
	setForwardMs = 0;
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

	/** When the user has started the workflow, milliseconds since the history began. */
	startedAt = Infinity;

	/** Whether single faults may still happen. */
	get isTroubled(): boolean {
		return this.time.now <= this.startedAt + TROUBLED_MS;
	}

	setClock(byMs: number): void {
		this.note(`clock set ${byMs < 0 ? 'back' : 'forward'}`);
		this.trace(`clock: is set by ${byMs / 1000} s`);
		this.time.moveWall(byMs);
		if (byMs < 0) this.setBackMs -= byMs;
		else this.setForwardMs += byMs;
	}

	/** Notes what is not as the contract wants it, since n8n allows no better. */
	except(what: string): true {
		this.exceptions.add(what);
		return true;
	}

	note(fault: string): void {
		this.faults.add(fault);
	}

	trace(line: string): void {
		const seconds = (this.time.now / 1000).toFixed(3);
		this.lines.push(`${seconds.padStart(9)}  ${line}`);
	}

	log(text: string): void {
		const { process } = this.time.activity;
		if (process && !process.effect()) return;
		this.logs.push(text);
		this.trace(`${process?.name ?? 'n8n'}: logs "${text}"`);
	}
}
