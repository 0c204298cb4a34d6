import type { IExecuteFunctions } from 'n8n-workflow';

import { clock } from '../shared/clock';
import { settled } from '../shared/promises';
import { executionIdOf, internalsOf } from './internals';
import { LedgerRow } from './ledgerRow';

/** How often a turn says that it is alive, milliseconds. */
const BEAT_MS = 5_000;

/** n8n's database hears of it in steps of so many milliseconds. */
const STEP_MS = 30_000;

/** A turn without a beat for more steps is dead: its process may have been busy for a minute. */
const STEPS_WITHOUT_BEAT = 2;

const stepOf = (now: number) => Math.floor(now / STEP_MS);

const beatAt = (step: number) => `alive at ${step}`;

/**
 * A turn of a run that has slept. In n8n's database a row stands for each turn, with the times at which the turn was alive.
 *
 * Nothing else tells that a turn has begun: n8n stores nothing of a turn before its end. And n8n wakes some executions
 * twice, under the same id and from the same stored state (shown on n8n 2.41 by test/e2e/long.test.ts): a turn that was
 * killed, because n8n's start makes it a waiting execution again; and a turn under way, if n8n's start has made it a
 * waiting execution after it was woken.
 */
export class TurnLease {
	private readonly row: LedgerRow;
	private readonly name: string;
	private readonly ended = new AbortController();

	/** @param turn the number of the turn in this run of the node */
	constructor(
		private readonly context: IExecuteFunctions,
		turn: number,
		execution = executionIdOf(context),
	) {
		this.name = `turn ${turn} of ${execution}.${internalsOf(context).runIndex ?? 0}`;
		this.row = new LedgerRow(context, this.name);
	}

	/** Whether the turn of another execution had begun, which was killed or stopped. */
	async hadBegun(): Promise<boolean> {
		return await this.row.has(this.name);
	}

	/**
	 * Begins the turn, unless it is under way elsewhere. It is alive until `end` is called.
	 *
	 * @returns `first`; `underWay`: this process must leave the turn alone; `dead`: another process had begun the turn, and
	 *   may have created tasks
	 */
	async begin(now = Date.now()): Promise<'first' | 'underWay' | 'dead'> {
		const step = stepOf(now);
		const isFirst = await this.row.insert([beatAt(step)]);
		if (!isFirst && (await this.isAlive(now))) return 'underWay';
		void this.stayAlive(isFirst ? step : undefined);
		return isFirst ? 'first' : 'dead';
	}

	/** Whether the turn, which has begun, is under way somewhere. */
	async isAlive(now = Date.now()): Promise<boolean> {
		const step = stepOf(now);
		// The present step comes last: to ask for it may take away a beat that comes at the same moment.
		const steps = Array.from({ length: STEPS_WITHOUT_BEAT }, (_, back) => step - back - 1);
		for (const each of [...steps, step]) {
			if (await this.row.has(beatAt(each))) return true;
		}
		return false;
	}

	/**
	 * Says now and then that the turn is alive: to n8n's database, and to n8n's process. That one counts executions by their
	 * ids, and would not wait for this turn at its shutdown after the other process or run of the turn has gone to sleep.
	 *
	 * @param last the step of the beat that the row has already
	 */
	async stayAlive(last?: number): Promise<void> {
		const setStatus = internalsOf(this.context).additionalData?.setExecutionStatus;
		while (!this.ended.signal.aborted) {
			const step = stepOf(Date.now());
			// n8n's store may fail now and then: the next beat comes soon.
			const told = step === last || 'value' in (await settled(this.row.add(beatAt(step))));
			if (told) last = step;
			await settled(async () => await Promise.resolve(setStatus?.('running')));
			await settled(clock.sleep(BEAT_MS, this.ended.signal));
		}
	}

	end(): void {
		this.ended.abort();
	}
}
