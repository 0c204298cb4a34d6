import { MIN_READ_INTERVAL_MS } from '../service/client';

/** The longest pause between two reads of a task that the specification names. */
const LONGEST_READ_INTERVAL_MS = 5_000;

/** The pause as a part of the task's age: a result is found so much of its time late at most. */
const PART_OF_AGE = 1 / 10;

/**
 * How long to wait until the next read of a task: two seconds at first, and five from its first minute on, since a long task
 * is found finished early enough all the same, and each read costs n8n and the service something.
 *
 * @param ageMs how old the task is, milliseconds
 * @returns milliseconds
 * @see docs/service.md, sections 4.2 and 8
 */
export const readPauseMs = (ageMs: number): number =>
	Math.min(Math.max(MIN_READ_INTERVAL_MS, PART_OF_AGE * ageMs), LONGEST_READ_INTERVAL_MS);
