import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { N8nInstall } from './install';

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
