import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { chownSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { endWithUs, killGroup, OWN_GROUP } from '../n8n/children';
import { freePort, HOST } from '../n8n/ports';
import { until } from '../n8n/until';

/** Debian keeps PostgreSQL's server programs outside the path. */
const findProgram = (name: string) =>
	spawnSync('sh', ['-c', `command -v ${name} || ls -rv /usr/lib/postgresql/*/bin/${name}`])
		.stdout.toString()
		.split('\n')[0];

/** Why no servers of one's own can be started on this machine, in one line; undefined where they can. */
export function missingForOwnServers(): string | undefined {
	const missing = ['initdb', 'postgres', 'redis-server'].filter((name) => !findProgram(name));
	return missing.length === 0 ? undefined : `no ${missing.join(', no ')} on this machine`;
}

interface User {
	uid?: number;
	gid?: number;
}

/** A server of the tests' own, with its data in a temporary folder: others use those of the machine. */
class OwnServer {
	private child: ChildProcess | undefined;

	protected constructor(
		readonly port: number,
		protected readonly folder: string,
		private readonly program: string,
		private readonly options: string[],
		private readonly ask: () => void,
		private readonly user: User = {},
	) {}

	async start(): Promise<void> {
		const program = findProgram(this.program) || this.program;
		const io = { cwd: this.folder, stdio: 'ignore' } as const;
		this.child = spawn(program, this.options, { ...io, ...this.user, ...OWN_GROUP });
		endWithUs(this.child);
		let reason = '';
		const isReady = () => {
			try {
				this.ask();
				return true;
			} catch (error) {
				reason = String(error);
				return false;
			}
		};
		await until(() => `${this.program} to be ready (${reason})`, 60_000, isReady, 100);
	}

	/** @param signal says how orderly it ends */
	async stop(signal: NodeJS.Signals): Promise<void> {
		const { child } = this;
		if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
		const exited = new Promise((resolve) => child.once('exit', resolve));
		child.kill(signal);
		await exited;
	}

	/** Ends it at once and removes its data. */
	async close(): Promise<void> {
		await this.stop('SIGKILL');
		if (this.child !== undefined) killGroup(this.child);
		rmSync(this.folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
	}
}

export class OwnPostgres extends OwnServer {
	/** Makes the server's files; it is not started yet. */
	static async make(): Promise<OwnPostgres> {
		const folder = mkdtempSync(join(tmpdir(), 'media-generation-postgres-'));
		const user: User = {};
		// PostgreSQL refuses to be run by root.
		if (process.getuid?.() === 0) {
			const [uid = 0, gid = 0] = ['-u', '-g'].map((flag) =>
				Number(execFileSync('id', [flag, 'postgres'])),
			);
			Object.assign(user, { uid, gid });
			chownSync(folder, uid, gid);
		}
		const port = await freePort();
		const data = join(folder, 'data');
		const options = ['-D', data, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--no-sync'];
		const initdb = findProgram('initdb') || 'initdb';
		execFileSync(initdb, options, { cwd: folder, stdio: 'ignore', ...user });
		const settings = [
			`listen_addresses=${HOST}`,
			`port=${port}`,
			'unix_socket_directories=',
			// The machine goes on when the server is stopped, so nothing is lost with the disk's cache.
			'fsync=off',
		].flatMap((setting) => ['-c', setting]);
		const question = ['-qh', HOST, '-p', String(port), '-U', 'postgres', '-c', 'select 1'];
		const ask = () => execFileSync('psql', question, { stdio: 'ignore', timeout: 5_000 });
		return new OwnPostgres(port, folder, 'postgres', ['-D', data, ...settings], ask, user);
	}
}

/** A Redis that keeps its data over a restart, in its append-only file. */
export class OwnRedis extends OwnServer {
	static async make(): Promise<OwnRedis> {
		const folder = mkdtempSync(join(tmpdir(), 'media-generation-redis-'));
		const port = await freePort();
		const place = ['--bind', HOST, '--port', String(port)];
		const options = [...place, '--save', '', '--appendonly', 'yes'];
		return new OwnRedis(port, folder, 'redis-server', options, () => {
			const question = ['-h', HOST, '-p', String(port), 'ping'];
			const pong = execFileSync('redis-cli', question, { stdio: 'pipe', timeout: 5_000 });
			// Its client ends well also where the server is still loading.
			if (!pong.toString().startsWith('PONG')) throw new Error(`Redis says ${pong.toString()}`);
		});
	}

	/** While it is stopped: as if it had kept nothing. */
	loseData(): void {
		rmSync(join(this.folder, 'appendonlydir'), { recursive: true });
	}
}
