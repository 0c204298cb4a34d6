import { spawn } from 'node:child_process';
import { closeSync, mkdirSync, openSync, readFileSync, rmSync, statSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { cacheFolder } from './cache';
import { endWithUs, killGroup, OWN_GROUP } from './children';
import { disabledModules } from './differences';
import { type N8nInstall, installN8n } from './install';
import { LEAN } from './settings';
import { assertPortFree, freePort, HOST } from './ports';

const READY_TIMEOUT_MS = 300_000;
const LOOK_EVERY_MS = 100;
/** How long n8n may take to shut down in order, in ms. */
const STOP_GRACE_MS = 10_000;
const SHOWN_LOG_LINES = 25;

/** All that n8n inherits of this process's environment: nothing may steer it but what is written here. */
const INHERITED = [
	'HOME',
	'LANG',
	'TMPDIR',
	'TZ',
	'USER',
	// Windows
	'APPDATA',
	'LOCALAPPDATA',
	'SystemRoot',
	'TEMP',
	'TMP',
	'USERPROFILE',
];

/** Keeps n8n from calling its maker's servers, and from asking questions that nobody answers here. */
const QUIET = {
	N8N_DIAGNOSTICS_ENABLED: 'false',
	N8N_VERSION_NOTIFICATIONS_ENABLED: 'false',
	N8N_TEMPLATES_ENABLED: 'false',
	N8N_PERSONALIZATION_ENABLED: 'false',
	N8N_HIRING_BANNER_ENABLED: 'false',
	// The list of verified community packages, too.
	N8N_VERIFIED_PACKAGES_ENABLED: 'false',
	// n8n asks npm for updates when its list of community nodes is opened; without a network npm goes on
	// trying for minutes.
	npm_config_fetch_retries: '0',
};

/** `start` is the whole n8n; the other two are queue mode's further processes. */
export type N8nCommand = 'start' | 'worker' | 'webhook';

export interface StartN8nOptions {
	/** n8n's user folder; its data are in `.n8n` inside. Made where it is missing, kept when n8n stops. */
	userFolder: string;
	/** Port on 127.0.0.1; default: a free one. */
	port?: number;
	command?: N8nCommand;
	/** Added to n8n's environment, over everything that is set here. */
	env?: Record<string, string>;
	/** Default: what `installN8n()` gives. */
	install?: N8nInstall;
	/** Takes progress lines of an installation, where one is needed. */
	log?: (line: string) => void;
	/** Default: five minutes, in ms. */
	readyTimeoutMs?: number;
}

/** n8n ended before it was ready, or was not ready in time. */
export class N8nStartError extends Error {
	/**
	 * @param reason in one sentence
	 * @param log n8n's last lines, and where the rest is
	 */
	constructor(
		readonly reason: string,
		log: string,
	) {
		super(`${reason} ${log}`);
		this.name = 'N8nStartError';
	}
}

/** A running n8n. */
export interface N8nProcess {
	/** e.g. `http://127.0.0.1:5678`, without a slash at the end. */
	url: string;
	port: number;
	pid: number;
	install: N8nInstall;
	userFolder: string;
	/** What n8n printed, of this start and of earlier ones in the same folder. */
	logFile: string;
	/** From the call of `startN8n` to ready, without the installation, in ms. */
	startedInMs: number;
	/** Settles when the process has ended, for whatever reason, with a short account of how. */
	exited: Promise<string>;
	/** @returns n8n's last lines of this start */
	logTail(): string;
	/** Shuts n8n down in order; after a grace of 10 s it is killed. */
	stop(): Promise<void>;
	/** Kills n8n and all that it started, at once, as a power cut would. */
	kill(): Promise<void>;
}

/**
 * Starts the real n8n, on SQLite unless `env` says otherwise, and waits until it answers. Several can run
 * side by side: each has its own user folder and its own ports. It ends with this process, even when that
 * is killed. To restart, stop it and start it again with the same `userFolder` and `port`.
 *
 * @throws where the port is in use; an `N8nStartError` with n8n's last lines where n8n ends or is not ready
 * in time; nothing is left running then
 */
export async function startN8n(options: StartN8nOptions): Promise<N8nProcess> {
	const { userFolder, command = 'start' } = options;
	const install = options.install ?? (await installN8n({ log: options.log }));
	const start = performance.now();
	const port = options.port ?? (await freePort());
	await assertPortFree(port, 'n8n');
	const url = `http://${HOST}:${port}`;

	mkdirSync(userFolder, { recursive: true });
	// Where n8n finds this file it takes the last session for crashed, and does nothing for ten seconds.
	rmSync(join(userFolder, '.n8n', 'crash.journal'), { force: true });
	const logFile = join(userFolder, command === 'start' ? 'n8n.log' : `n8n-${command}-${port}.log`);
	const logDescriptor = openSync(logFile, 'a');
	const logStart = statSync(logFile).size;
	const logTail = () =>
		readFileSync(logFile)
			.subarray(logStart)
			.toString('utf8')
			.trimEnd()
			.split('\n')
			.slice(-SHOWN_LOG_LINES)
			.join('\n');

	const isLean = options.env?.N8N_DISABLE_UI === LEAN.N8N_DISABLE_UI;
	const child = spawn(
		install.nodeBinary,
		[join(__dirname, 'run-n8n.cjs'), install.n8nScript, command],
		{
			// n8n reads a .env file of the folder it runs in.
			cwd: userFolder,
			env: { ...(await environment(install, userFolder, port, isLean)), ...options.env },
			stdio: ['ignore', logDescriptor, logDescriptor, 'pipe'],
			...OWN_GROUP,
		},
	);
	closeSync(logDescriptor);
	// run-n8n.cjs notices the end of this process, too, but not while n8n keeps it busy.
	endWithUs(child);
	const exited = new Promise<string>((resolve) => {
		child.once('error', (error) => resolve(`could not be started: ${error.message}`));
		child.once('exit', (code, signal) => {
			killGroup(child);
			resolve(signal ? `was ended by ${signal}` : `exited with ${code}`);
		});
	});
	const kill = async () => {
		killGroup(child);
		await exited;
	};

	try {
		await untilReady(url, command, exited, options.readyTimeoutMs ?? READY_TIMEOUT_MS);
	} catch (error) {
		await kill();
		const reason = error instanceof Error ? error.message : String(error);
		throw new N8nStartError(
			`n8n ${install.version} ${reason}.`,
			`Its log is ${logFile} and ends with:\n${logTail()}`,
		);
	}
	return {
		url,
		port,
		// Always there after a start that succeeded.
		pid: child.pid ?? 0,
		install,
		userFolder,
		logFile,
		startedInMs: Math.round(performance.now() - start),
		exited,
		logTail,
		stop: async () => {
			child.kill('SIGTERM');
			const timer = setTimeout(() => killGroup(child), STOP_GRACE_MS);
			await exited;
			clearTimeout(timer);
		},
		kill,
	};
}

async function environment(
	install: N8nInstall,
	userFolder: string,
	port: number,
	isLean: boolean,
): Promise<Record<string, string>> {
	const inherited = INHERITED.flatMap((name) => {
		const value = process.env[name];
		return value === undefined ? [] : [[name, value]];
	});
	return {
		...Object.fromEntries(inherited),
		...QUIET,
		...disabledModules(install, isLean),
		// n8n starts its task runner as `node`, which must be the Node.js of the installation.
		PATH: [dirname(install.nodeBinary), process.env.PATH ?? ''].join(delimiter),
		NODE_ENV: 'production',
		// n8n compiles 9,000 files at each start; with this they are compiled once.
		NODE_COMPILE_CACHE: join(cacheFolder(), 'compiled'),
		N8N_USER_FOLDER: userFolder,
		N8N_HOST: HOST,
		N8N_LISTEN_ADDRESS: HOST,
		N8N_PORT: String(port),
		N8N_EDITOR_BASE_URL: `http://${HOST}:${port}/`,
		WEBHOOK_URL: `http://${HOST}:${port}/`,
		// Browsers take a secure cookie over http from localhost only.
		N8N_SECURE_COOKIE: 'false',
		N8N_RUNNERS_BROKER_PORT: String(await freePort()),
		// A worker serves nothing but this.
		QUEUE_HEALTH_CHECK_ACTIVE: 'true',
		QUEUE_HEALTH_CHECK_PORT: String(port),
	};
}

const READY = '/healthz/readiness';

/** Whoever is not logged in gets 401 here. */
const LOGIN = '/rest/login';

async function untilReady(
	url: string,
	command: N8nCommand,
	exited: Promise<string>,
	timeoutMs: number,
): Promise<void> {
	let exit: string | undefined;
	void exited.then((how) => (exit = how));
	// The first answers as soon as n8n has its database, the second when its interface is there as well.
	const pages = [[READY, 200] as const, ...(command === 'start' ? [[LOGIN, 401] as const] : [])];
	const deadline = performance.now() + timeoutMs;
	while (performance.now() < deadline) {
		if (exit !== undefined) throw new Error(`${exit} before it was ready`);
		const looks = pages.map(async ([page, status]) => await answers(url + page, status));
		if ((await Promise.all(looks)).every(Boolean)) return;
		await sleep(LOOK_EVERY_MS);
	}
	throw new Error(`was not ready after ${timeoutMs / 1000} s`);
}

async function answers(url: string, status: number): Promise<boolean> {
	try {
		const response = await fetch(url, { signal: AbortSignal.timeout(5_000) });
		const isJson = response.headers.get('content-type')?.includes('application/json') ?? false;
		await response.arrayBuffer();
		// While it starts, n8n answers 200 with a text to everything.
		return response.status === status && isJson;
	} catch {
		return false;
	}
}
