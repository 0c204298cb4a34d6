/**
 * Reads a `Retry-After` header: seconds, or a date.
 *
 * @param now the present time, milliseconds since 1970
 * @returns milliseconds to wait, or undefined where the header is absent or makes no sense
 */
export function retryAfterMs(header: unknown, now: number): number | undefined {
	if (typeof header !== 'string' || header.trim() === '') return undefined;
	if (/^\s*\d+(\.\d+)?\s*$/.test(header)) return Number(header) * 1000;
	// Every date in a header names its day or month; `-5` would pass for a date too.
	const date = /[a-z]{3}/i.test(header) ? Date.parse(header) : NaN;
	return Number.isNaN(date) ? undefined : Math.max(0, date - now);
}
