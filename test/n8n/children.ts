import { type ChildProcess, spawnSync } from 'node:child_process';
import { onExit } from 'signal-exit';

/** Options of `spawn` for a child that can be ended with all that it starts. */
export const OWN_GROUP = { detached: process.platform !== 'win32', windowsHide: true };

/** Kills a child that was spawned with `OWN_GROUP`, and all that it started; what has ended is no error. */
export function killGroup({ pid }: ChildProcess): void {
	if (pid === undefined) return;
	if (process.platform === 'win32') {
		spawnSync('taskkill', ['/pid', String(pid), '/t', '/f'], { stdio: 'ignore' });
		return;
	}
	try {
		process.kill(-pid, 'SIGKILL');
	} catch {
		// The group is gone.
	}
}

/** Kills a child that was spawned with `OWN_GROUP` when this process ends, by a signal too. */
export function endWithUs(child: ChildProcess): void {
	const forget = onExit(() => killGroup(child));
	child.once('close', forget);
}
