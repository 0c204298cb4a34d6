import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

/** Clock ticks a second in /proc, the same on every Linux that Node.js runs on. */
const TICK_MS = 10;

const QUIET_LOOK_MS = 300;
const QUIET_CPU_MS = 20;

/** What an n8n takes of the machine, as Linux counts it; elsewhere nothing can be read. */
export class Usage {
	/** @param pid n8n's main process */
	constructor(private readonly pid: number) {}

	/**
	 * CPU time of n8n's main process with all its threads so far, milliseconds; its task runner is not in it.
	 *
	 * @throws where there is no such process
	 */
	cpuMs(): number {
		const stat = readFileSync(`/proc/${this.pid}/stat`, 'utf8');
		// The second field is the program's name in brackets, in which anything may stand.
		const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
		const [user = 0, system = 0] = fields.slice(11, 13).map(Number);
		return (user + system) * TICK_MS;
	}

	/** Waits until n8n has nothing left to do. */
	async quiet(timeoutMs = 120_000): Promise<void> {
		const giveUpAt = performance.now() + timeoutMs;
		for (let calm = 0, last = this.cpuMs(); calm < 2 && performance.now() < giveUpAt;) {
			await sleep(QUIET_LOOK_MS);
			const now = this.cpuMs();
			calm = now - last <= QUIET_CPU_MS ? calm + 1 : 0;
			last = now;
		}
	}
}
