import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { N8nInstall } from './install';
import { chooseN8nVersion, DEFAULT_VERSION } from './version';

/** Its list of MCP servers is fetched from n8n's maker at every start. */
const CALLS_HOME = 'mcp-registry';

/** @returns the environment that leaves out n8n's module that calls its maker; n8n refuses a name it has not */
export function disabledModules({ n8nScript }: N8nInstall): Record<string, string> {
	const folder = join(n8nScript, '../../dist/modules', CALLS_HOME);
	return existsSync(folder) ? { N8N_DISABLED_MODULES: CALLS_HOME } : {};
}

/** @returns why tests that go by what the editor of the default version looks like cannot run on the chosen one */
export function missingInEditor(): string | undefined {
	const { version } = chooseN8nVersion();
	if (version === DEFAULT_VERSION) return undefined;
	return `The editor of n8n ${version} looks and behaves otherwise than that of ${DEFAULT_VERSION}.`;
}

/** Whether the chosen version answers a callback before it has stored the execution that it starts. */
export function answersBeforeStoring(): boolean {
	const { version } = chooseN8nVersion();
	return version.startsWith('1.') || version.startsWith('2.0.');
}

/** @returns why hundreds of callbacks to suspended executions are too many for the chosen version */
export function missingForManyCallbacks(): string | undefined {
	const { version } = chooseN8nVersion();
	if (!version.startsWith('1.')) return undefined;
	return `n8n ${version} builds an expression engine for each callback to a suspended execution.`;
}
