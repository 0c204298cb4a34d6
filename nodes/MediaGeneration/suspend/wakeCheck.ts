import type { IWebhookFunctions } from 'n8n-workflow';

import { attempt } from '../shared/attempt';
import { forbiddenAddress } from '../shared/requestError';
import { callbackAddress } from '../callback/callbackUrl';

/** n8n stores the execution before it answers. */
const ANSWER_LIMIT_MS = 5_000;

/**
 * Has the sub-execution check at once that waits for the tasks of this execution.
 *
 * @param url its resume URL
 * @param taskId the task that is said to be finished
 * @returns whether it took the call; where it did not, it checks later, at its own time
 */
export async function wakeCheck(
	context: IWebhookFunctions,
	url: string,
	taskId: string,
	apiKey: string,
): Promise<boolean> {
	for (const address of addressesOf(context, url)) {
		const called = await attempt(
			async () =>
				(await context.helpers.httpRequest({
					method: 'POST',
					url: callbackAddress(address, apiKey),
					body: { taskId },
					encoding: 'text',
					timeout: ANSWER_LIMIT_MS,
					returnFullResponse: true,
					ignoreHttpStatusErrors: true,
					disableFollowRedirect: true,
				})) as { statusCode: number },
		);
		if ('value' in called && called.value.statusCode === 200) return true;
		const forbidden =
			'error' in called &&
			forbiddenAddress(called.error, 'n8n does not let this node call n8n itself');
		if (forbidden) context.logger.info(`${forbidden.message}. ${forbidden.description}`);
	}
	return false;
}

/**
 * The socket that this very callback came in at, and then n8n's public address: that one may lead through a tunnel or a
 * proxy that does not let n8n call itself, and the socket may want TLS.
 */
function* addressesOf(context: IWebhookFunctions, url: string): Iterable<string> {
	const request = context.getRequestObject();
	const { localAddress, localPort } = request.socket ?? {};
	if (localAddress !== undefined && localPort !== undefined) {
		const ownPath = request.originalUrl.split('?', 1)[0] ?? '';
		const own = `/${String(context.getExecutionId())}/`;
		const { pathname, search } = new URL(url);
		const [, executionId = ''] = /\/([^/]+)\/[^/]+$/.exec(pathname) ?? [];
		const at = ownPath.lastIndexOf(own);
		if (at !== -1 && executionId !== '') {
			const path = `${ownPath.slice(0, at)}/${executionId}/${ownPath.slice(at + own.length)}`;
			yield `http://${hostOf(localAddress)}:${localPort}${path}${search}`;
		}
	}
	yield url;
}

/** An IPv4 address may be written as an IPv6 one. */
function hostOf(address: string): string {
	const plain = address.replace(/^::ffff:/i, '');
	return plain.includes(':') ? `[${plain}]` : plain;
}
