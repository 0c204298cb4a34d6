import { inspect } from 'node:util';

import { clock, Stopped } from '../../nodes/MediaGeneration/shared/clock';

/** What a piece of work throws; the test fails where it throws nothing. */
export async function caught(work: () => unknown): Promise<Error> {
	try {
		await work();
	} catch (error) {
		if (error instanceof Error) return error;
		throw new Error(`Thrown was no error but ${String(error)}`);
	}
	throw new Error('Nothing was thrown');
}

/** Everything of an error that may come before somebody's eyes, causes included, as one text. */
export const visibleText = (error: unknown): string =>
	inspect(error, {
		depth: Infinity,
		showHidden: true,
		getters: true,
		customInspect: false,
		maxStringLength: null,
		maxArrayLength: null,
		breakLength: Infinity,
	}) + JSON.stringify(error);

/** So often no work of a test sleeps: a day has 43,200 poll intervals. */
const MOST_SLEEPS = 100_000;

const real = { ...clock };
afterEach(() => Object.assign(clock, real));

/** The clock of the present test: on it a sleep takes no time, for one sleeper at a time. */
export class FakeClock {
	/** The length of each sleep, in milliseconds. */
	readonly sleeps: number[] = [];

	constructor(private time = 0) {
		clock.now = () => this.now();
		clock.sleep = async (ms, signal) => await this.sleep(ms, signal);
	}

	now(): number {
		return this.time;
	}

	/** Lets time pass beside the sleeps: what an answer took. */
	pass(ms: number): void {
		this.time += ms;
	}

	async sleep(ms: number, signal: AbortSignal | undefined): Promise<void> {
		if (signal?.aborted) throw new Stopped();
		if (this.sleeps.push(ms) > MOST_SLEEPS) throw new Error('The work does not end');
		this.time += ms;
	}
}

/** A clock on which each look takes a millisecond, as if the work between two looks did. */
export class BusyClock extends FakeClock {
	override now(): number {
		this.pass(1);
		return super.now();
	}
}
