/** Fetches whatever stands at the addresses in a task's input, however deep they stand, as a model does. */
export async function fetchFiles(input: unknown) {
	return await Promise.all(
		addressesIn(input).map(async (url) => {
			const response = await fetch(url);
			const body = Buffer.from(await response.arrayBuffer());
			const { status, headers } = response;
			return { url, status, type: headers.get('content-type'), body };
		}),
	);
}

function addressesIn(value: unknown): string[] {
	if (typeof value === 'string') return /^https?:/i.test(value) ? [value] : [];
	return typeof value === 'object' && value !== null
		? Object.values(value).flatMap(addressesIn)
		: [];
}

/**
 * Posts JSON on a connection of its own, so that no receiver is kept from closing by an idle connection.
 *
 * @param signal ends it without an answer
 * @returns the status of the answer
 * @throws where there is no answer within 15 seconds
 */
export async function post(url: string, body: unknown, signal: AbortSignal): Promise<number> {
	const response = await fetch(url, {
		method: 'POST',
		headers: { 'content-type': 'application/json', connection: 'close' },
		body: JSON.stringify(body),
		redirect: 'manual',
		signal: AbortSignal.any([signal, AbortSignal.timeout(15_000)]),
	});
	await response.arrayBuffer();
	return response.status;
}
