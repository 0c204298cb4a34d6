import type { INode } from 'n8n-workflow';

/** What every context of n8n holds, although no interface of n8n says so. */
interface Insides {
	workflow?: { nodes?: Record<string, INode> };
	additionalData?: {
		/** n8n's public address with the path of production webhooks. */
		webhookBaseUrl?: unknown;
		/** The mode of the execution that a sub-execution was begun by, at first. */
		rootExecutionMode?: unknown;
		/** When n8n's time limit ends the execution, milliseconds since 1970. */
		executionTimeoutTimestamp?: unknown;
	};
}

export const insidesOf = (context: object): Insides => context;

/**
 * Where n8n serves production webhooks, as its settings say now.
 *
 * @returns undefined where n8n does not tell
 */
export function webhookBase(context: object): string | undefined {
	const base = insidesOf(context).additionalData?.webhookBaseUrl;
	return typeof base === 'string' && URL.canParse(base) ? new URL(base).href : undefined;
}
