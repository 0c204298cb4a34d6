import * as http from 'node:http';
import * as https from 'node:https';

const TIMEOUT_MS = 15_000;

/**
 * A POST on a connection of its own, so that no receiver is kept from closing by an idle connection.
 *
 * @param signal ends it without an answer
 * @returns the status of the answer
 * @throws where there is no answer within 15 seconds
 */
export async function post(url: string, body: unknown, signal: AbortSignal): Promise<number> {
	const { request } = url.startsWith('https:') ? https : http;
	const text = JSON.stringify(body);
	return await new Promise((resolve, reject) => {
		const outgoing = request(url, {
			method: 'POST',
			agent: false,
			signal,
			timeout: TIMEOUT_MS,
			headers: { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) },
		});
		outgoing.on('timeout', () => {
			outgoing.destroy(new Error(`No answer within ${TIMEOUT_MS / 1000} seconds`));
		});
		outgoing.on('error', reject);
		outgoing.on('response', (response) => {
			response.on('error', reject);
			response.on('end', () => resolve(response.statusCode ?? 0));
			response.resume();
		});
		outgoing.end(text);
	});
}
