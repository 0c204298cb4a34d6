import { spawn } from 'node:child_process';
import { closeSync, mkdirSync, openSync, readFileSync, rmSync, statSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { cacheFolder } from './cache';
import { endWithUs, killGroup, OWN_GROUP } from './children';
import { disabledModules } from './modules';
import { type N8nInstall, installN8n } from './install';
import { LEAN } from './settings';
import { freePort, HOST } from './ports';
import { until } from './until';

const READY_TIMEOUT_MS = 300_000;
/** How long n8n may take to shut down in order. */
const STOP_GRACE_MS = 10_000;

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

interface StartN8nOptions {
	/** Its data are in `.n8n` inside. */
	userFolder: string;
	/** Default: a free one. */
	port?: number;
	/** `start` is the whole n8n; the other two are queue mode's further processes. */
	command?: 'start' | 'worker' | 'webhook';
	/** Added to n8n's environment, over everything that is set here. */
	env?: Record<string, string>;
	/** Default: what `installN8n()` gives. */
	install?: N8nInstall;
}

/** n8n ended before it was ready, or was not ready in time. */
export class N8nStartError extends Error {}

export type N8nProcess = Awaited<ReturnType<typeof startN8n>>;

/**
 * Starts the real n8n, and waits until it answers. It ends with this process, even when that is killed.
 *
 * @throws an `N8nStartError` with n8n's last lines where it ends or is not ready in time
 */
export async function startN8n(options: StartN8nOptions) {
	const { userFolder, command = 'start' } = options;
	const install = options.install ?? (await installN8n());
	const start = performance.now();
	const port = options.port ?? (await freePort());
	const url = `http://${HOST}:${port}`;

	mkdirSync(userFolder, { recursive: true });
	// Where n8n finds this file it takes the last session for crashed, and does nothing for ten seconds.
	rmSync(join(userFolder, '.n8n', 'crash.journal'), { force: true });
	const logFile = join(userFolder, command === 'start' ? 'n8n.log' : `n8n-${command}-${port}.log`);
	const logDescriptor = openSync(logFile, 'a');
	const logStart = statSync(logFile).size;
	const logTail = () => tailOf(readFileSync(logFile).subarray(logStart));

	const isLean = options.env?.N8N_DISABLE_UI === LEAN.N8N_DISABLE_UI;
	const script = [join(__dirname, 'run-n8n.cjs'), install.n8nScript, command];
	const child = spawn(install.nodeBinary, script, {
		// n8n reads a .env file of the folder it runs in.
		cwd: userFolder,
		env: { ...(await environment(install, userFolder, port, isLean)), ...options.env },
		stdio: ['ignore', logDescriptor, logDescriptor, 'pipe'],
		...OWN_GROUP,
	});
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
		await untilReady(url, command, exited);
	} catch (error) {
		await kill();
		throw new N8nStartError(
			`n8n ${install.version} did not start. ${String(error)} Its log is ${logFile} and ends with:\n${logTail()}`,
		);
	}
	return {
		/** Without a slash at the end. */
		url,
		port,
		// Always there after a start that succeeded.
		pid: child.pid ?? 0,
		install,
		userFolder,
		/** What n8n printed, of this start and of earlier ones in the same folder. */
		logFile,
		startedInMs: Math.round(performance.now() - start),
		/** Settles when the process has ended, for whatever reason, with a short account of how. */
		exited,
		logTail,
		/** Shuts n8n down in order. @param graceMs so long n8n has time for what it is at, milliseconds */
		stop: async (graceMs = STOP_GRACE_MS) => {
			child.kill('SIGTERM');
			const timer = setTimeout(() => killGroup(child), graceMs);
			await exited;
			clearTimeout(timer);
		},
		/** Kills n8n and all that it started, at once, as a power cut would. */
		kill,
	};
}

/** @returns the last lines of a log */
const tailOf = (log: Buffer) => log.toString().trimEnd().split('\n').slice(-25).join('\n');

async function environment(
	install: N8nInstall,
	userFolder: string,
	port: number,
	isLean: boolean,
): Promise<Record<string, string>> {
	const inherited = Object.entries(process.env).filter(([name]) => INHERITED.includes(name));
	return {
		...(Object.fromEntries(inherited) as Record<string, string>),
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

async function untilReady(url: string, command: string, exited: Promise<string>): Promise<void> {
	let exit: string | undefined;
	void exited.then((how) => (exit = how));
	// The first answers as soon as n8n has its database. The second, which answers 401 to whoever is not logged in, does so
	// when its interface is there as well.
	const pages: Array<[string, number]> = [['/healthz/readiness', 200]];
	if (command === 'start') pages.push(['/rest/login', 401]);
	const isReady = async () => {
		if (exit !== undefined) throw new Error(`It ${exit} before it was ready.`);
		const looks = pages.map(async ([page, status]) => await answers(url + page, status));
		return (await Promise.all(looks)).every(Boolean);
	};
	await until('it to be ready', READY_TIMEOUT_MS, isReady, 100);
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
