import type { IDataObject } from 'n8n-workflow';

/** Whether a parsed JSON value is an object (and neither an array nor null). */
export function isRecord(value: unknown): value is IDataObject {
	return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The number that a JSON value stands for: a finite number or a string that holds one; null otherwise. */
export function toNumber(value: unknown): number | null {
	if (typeof value === 'number') return Number.isFinite(value) ? value : null;
	if (typeof value !== 'string' || !/^\s*[-+]?\d+(\.\d+)?\s*$/.test(value)) return null;
	return Number(value);
}
