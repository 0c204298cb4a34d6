/** A file that the service has fetched, as a model does with the addresses in its input. */
export interface FetchedFile {
	readonly url: string;
	readonly status: number;
	readonly type: string | null;
	readonly body: Buffer;
}

/** Fetches whatever stands at the addresses in a task's input, however deep they stand. */
export async function fetchFiles(input: unknown): Promise<FetchedFile[]> {
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
