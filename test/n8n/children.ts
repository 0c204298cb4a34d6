import { type ChildProcess, spawnSync } from 'node:child_process';

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

const children = new Set<ChildProcess>();
const killAll = () => children.forEach(killGroup);

process.on('exit', killAll);
for (const signal of ['SIGHUP', 'SIGINT', 'SIGTERM'] as const) {
	process.on(signal, () => {
		// Whoever else listens ends this process in order; the children end with it then.
		if (process.listenerCount(signal) > 1) return;
		killAll();
		process.removeAllListeners(signal);
		process.kill(process.pid, signal);
	});
}

/** Kills a child that was spawned with `OWN_GROUP` when this process ends, by a signal too. */
export function endWithUs(child: ChildProcess): void {
	children.add(child);
	child.once('close', () => children.delete(child));
}
