import { join } from 'node:path';

/**
 * What n8n 3 will set, on the n8n of today: unverified packages stated, runs by hand on a worker (so in queue mode), files
 * in the file system, and its protection against requests to private addresses, with those of the tests' own servers
 * allowed.
 */
export const N8N_3: Record<string, string> = {
	N8N_UNVERIFIED_PACKAGES_ENABLED: 'true',
	OFFLOAD_MANUAL_EXECUTIONS_TO_WORKERS: 'true',
	N8N_DEFAULT_BINARY_DATA_MODE: 'filesystem',
	N8N_SSRF_PROTECTION_ENABLED: 'true',
	N8N_SSRF_ALLOWED_IP_RANGES: '127.0.0.0/8',
};

/** @returns whether the end-to-end tests are to run with what n8n 3 will set */
export function isLikeN8n3(): boolean {
	const name = process.env.N8N_SETTINGS || 'none';
	if (name !== 'n8n3' && name !== 'none') throw new Error(`N8N_SETTINGS knows n8n3, not ${name}.`);
	return name === 'n8n3';
}

/** The environment of an n8n in which a minute for which an execution waits lasts so long: see `shortMinute.cjs`. */
export const shortMinute = (ms = 4_000): Record<string, string> => ({
	NODE_OPTIONS: `--require ${join(__dirname, 'shortMinute.cjs')}`,
	SHORT_MINUTE_MS: String(ms),
});

/** For an n8n that runs no Code node: it starts no task runner of its own. */
export const NO_RUNNER = {
	N8N_RUNNERS_MODE: 'external',
	N8N_RUNNERS_AUTH_TOKEN: 'unused',
};

/**
 * For an n8n without Code nodes that nobody opens in a browser: it takes half the CPU time to start, and a seventh less to
 * run. It knows no node types, and prepares for expressions when there is one, and not at each execution.
 */
export const LEAN = {
	...NO_RUNNER,
	N8N_DISABLE_UI: 'true',
	N8N_EXPRESSION_ENGINE_LAZY_ACQUIRE: 'true',
	N8N_EXPRESSION_ENGINE_COMPILE_CACHE: 'true',
};

/** Put over the environment of an n8n whose minutes are those on the clock. */
export const WHOLE_MINUTE = { NODE_OPTIONS: '' };
