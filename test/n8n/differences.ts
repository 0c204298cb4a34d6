import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { N8nInstall } from './install';
import { isLikeN8n3 } from './settings';
import { chooseN8nVersion } from './version';

/** Its list of MCP servers is fetched from n8n's maker at every start. */
const CALLS_HOME = 'mcp-registry';

/** Modules of n8n that no run of a workflow uses: to load them takes a quarter of its start. */
const APART_FROM_RUNS =
	`breaking-changes chat-hub dynamic-credentials external-secrets favorites instance-ai
	instance-version-history ldap log-streaming n8n-packages oauth-jwe oauth-server quick-connect source-control sso-oidc
	sso-saml token-exchange workflow-reviews`.split(/\s+/);

/** The environment that leaves out n8n's module that calls its maker, and where `isLean` what no run uses. */
export function disabledModules({ n8nScript }: N8nInstall, isLean = false): Record<string, string> {
	const folder = join(n8nScript, '../../dist/modules');
	// n8n refuses a name that it does not know.
	const isThere = (name: string) =>
		[name, `${name}.ee`].some((module) => existsSync(join(folder, module)));
	const disabled = [CALLS_HOME, ...(isLean ? APART_FROM_RUNS : [])].filter(isThere);
	return disabled.length > 0 ? { N8N_DISABLED_MODULES: disabled.join(',') } : {};
}

/** What some tests need: in which of the versions that are prepared here it is first, and how it is before. */
const FIRST = {
	any: { in: '1.0.0', before: 'it is too old' },
	linksToFiles: { in: '1.0.0', before: 'it is too old' },
	storedStops: {
		in: '2.41.1',
		before: 'what it stores of a caller does not tell that it was stopped',
	},
	editor: { in: '2.41.1', before: 'its editor looks and behaves otherwise' },
	panelsThatClose: { in: '2.0.3', before: 'its panels are left in another way' },
	suspending: { in: '2.0.3', before: 'it can only hold its executions' },
	oneRunOfStalledJobs: {
		in: '2.0.3',
		before: 'it runs what a killed worker was running once more, unless it is told not to',
	},
	workersAfterRedisLost: {
		in: '2.41.1',
		before: 'its worker takes no more jobs when Redis has lost all',
	},
	endOfSubExecutions: {
		in: '2.41.1',
		before: 'it does not look for executions whose sub-execution has ended',
	},
	tellsRetried: { in: '2.41.1', before: 'it does not tell a node which execution is retried' },
	dataTables: { in: '2.41.1', before: 'its Data Table node has no version 1.1' },
	agents: { in: '2.41.1', before: 'it does not start an agent by hand as 2.41 does' },
	latestHttpRequest: { in: '2.41.1', before: 'its HTTP Request node has no version 4.4' },
	connectionErrors: { in: '2.41.1', before: 'it does not tell whether there was a connection' },
	databaseLimit: { in: '2.41.1', before: 'it does not refuse files that are too large so' },
	deadAddress: { in: '2.41.1', before: 'its looks are tested on the newest one alone' },
	engineV2: { in: '2.41.1', before: 'it has no engine v2' },
	answersAfterStoring: { in: '2.41.1', before: 'it answers before it stores' },
};
export type Need = keyof typeof FIRST;

/** What is otherwise as n8n 3 will be set. */
const NOT_LIKE_N8N_3: Partial<Record<Need, string>> = {
	engineV2: 'its engine v2 does not support queue mode',
	storedStops: 'a worker may store its own data over the stop of a caller',
	linksToFiles: 'links lead to a webhook processor, which serves no files without a load balancer',
	deadAddress: 'a run by hand is on a worker, which asks at the public address, where nobody is',
};

/** @returns why what needs something cannot be tested on the chosen n8n; undefined where it can */
export function missingInN8n(need: Need): string | undefined {
	const { version } = chooseN8nVersion();
	const first = FIRST[need];
	const isThere = version.localeCompare(first.in, undefined, { numeric: true }) >= 0;
	if (!isThere) return `n8n ${version}: ${first.before}.`;
	const otherwise = isLikeN8n3() ? NOT_LIKE_N8N_3[need] : undefined;
	return otherwise && `n8n ${version} as n8n 3 will be set: ${otherwise}.`;
}
