import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

import { endWithUs, killGroup, OWN_GROUP } from '../n8n/children';
import { freePort, HOST } from '../n8n/ports';

const READY_TIMEOUT_MS = 60_000;

/** Debian keeps PostgreSQL's server programs outside the path. */
const DEBIAN_POSTGRES = '/usr/lib/postgresql';

/** @returns the path of a server program; undefined where it is not installed */
function findProgram(name: string): string | undefined {
	const versions = existsSync(DEBIAN_POSTGRES) ? readdirSync(DEBIAN_POSTGRES) : [];
	const newestFirst = versions.sort((a, b) => Number(b) - Number(a));
	return [
		...(process.env.PATH ?? '').split(delimiter),
		...newestFirst.map((version) => join(DEBIAN_POSTGRES, version, 'bin')),
	]
		.map((folder) => join(folder, name))
		.find((path) => existsSync(path));
}

/** Why no servers of one's own can be started on this machine, in one line; undefined where they can. */
export function missingForOwnServers(): string | undefined {
	const missing = ['initdb', 'postgres', 'redis-server'].filter((name) => !findProgram(name));
	return missing.length === 0 ? undefined : `no ${missing.join(', no ')} on this machine`;
}

/** Which user a server runs as: PostgreSQL refuses to be run by root. */
function userOf(name: string): { uid?: number; gid?: number } {
	if (process.getuid?.() !== 0) return {};
	const idOf = (flag: string) => Number(execFileSync('id', [flag, name]).toString());
	return { uid: idOf('-u'), gid: idOf('-g') };
}

/** A server of the tests' own, with its data in a temporary folder: others use those of the machine. */
class OwnServer {
	private child: ChildProcess | undefined;

	protected constructor(
		readonly port: number,
		protected readonly folder: string,
		private readonly program: string,
		private readonly options: string[],
		private readonly isReady: () => void,
		private readonly user: { uid?: number; gid?: number } = {},
	) {}

	/** @throws where it does not answer in time */
	async start(): Promise<void> {
		const program = findProgram(this.program) ?? this.program;
		const child = spawn(program, this.options, {
			cwd: this.folder,
			stdio: 'ignore',
			...this.user,
			...OWN_GROUP,
		});
		endWithUs(child);
		this.child = child;
		const giveUp = Date.now() + READY_TIMEOUT_MS;
		for (;;) {
			try {
				this.isReady();
				return;
			} catch (error) {
				if (Date.now() > giveUp) throw error;
				await sleep(100);
			}
		}
	}

	/**
	 * Ends it.
	 *
	 * @param signal by which; the caller's choice says how orderly
	 */
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
		const user = userOf('postgres');
		if (user.uid !== undefined && user.gid !== undefined) chownSync(folder, user.uid, user.gid);
		const port = await freePort();
		const data = join(folder, 'data');
		const options = ['-D', data, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--no-sync'];
		execFileSync(findProgram('initdb') ?? 'initdb', options, {
			cwd: folder,
			stdio: 'ignore',
			...user,
		});
		const settings = [
			`listen_addresses=${HOST}`,
			`port=${port}`,
			'unix_socket_directories=',
			// The machine goes on when the server is stopped, so nothing is lost with the disk's cache.
			'fsync=off',
		];
		return new OwnPostgres(
			port,
			folder,
			'postgres',
			['-D', data, ...settings.flatMap((setting) => ['-c', setting])],
			() => {
				const connection = ['-qh', HOST, '-p', String(port), '-U', 'postgres', '-c', 'select 1'];
				execFileSync('psql', connection, { stdio: 'ignore', timeout: 5_000 });
			},
			user,
		);
	}
}

/** A Redis that keeps its data over a restart, in its append-only file. */
export class OwnRedis extends OwnServer {
	static async make(): Promise<OwnRedis> {
		const folder = mkdtempSync(join(tmpdir(), 'media-generation-redis-'));
		const port = await freePort();
		return new OwnRedis(
			port,
			folder,
			'redis-server',
			['--bind', HOST, '--port', String(port), '--save', '', '--appendonly', 'yes'],
			() => {
				const connection = ['-h', HOST, '-p', String(port), 'ping'];
				const pong = execFileSync('redis-cli', connection, { stdio: 'pipe', timeout: 5_000 });
				// Its client ends well also where the server is still loading.
				if (!pong.toString().startsWith('PONG')) throw new Error(`Redis says ${pong.toString()}`);
			},
		);
	}

	/** While it is stopped: as if it had kept nothing. */
	loseData(): void {
		rmSync(join(this.folder, 'appendonlydir'), { recursive: true });
	}
}
