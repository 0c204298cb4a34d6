import type { FunctionsBase } from 'n8n-workflow';

/** What would begin a line of its own, or hide a part of it. */
const CONTROL = /[\p{Cc}\u2028\u2029]/gu;

/**
 * Writes one line into n8n's log, which begins with the name of the node. An id or words of the service make no line of
 * their own: whoever reads the log takes each line for one of n8n.
 */
export function writeLog(context: FunctionsBase, level: 'info' | 'warn', text: string): void {
	const line = `${context.getNode().name}: ${text}`;
	context.logger[level](line.replace(CONTROL, (sign) => encodeURIComponent(sign)));
}
