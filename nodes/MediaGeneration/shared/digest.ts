import { createHash } from 'crypto';

/**
 * A short name for a JSON value: two values have the same name only if they are written the same.
 *
 * @returns 32 hex digits of SHA-256
 */
export function digest(value: unknown): string {
	return createHash('sha256').update(JSON.stringify(value)).digest('hex').slice(0, 32);
}
