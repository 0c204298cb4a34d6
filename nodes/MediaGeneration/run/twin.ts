import type { IExecuteFunctions, INodeExecutionData } from 'n8n-workflow';

import type { Journal } from '../create/journal';
import { nodeContext } from '../n8n/internals';
import { storedContext } from '../n8n/storedContext';
import type { TurnLease } from '../n8n/turnLease';
import { clock } from '../shared/clock';
import { suspend } from './sleep';

/** How often a twin looks for the end of the turn, milliseconds. */
const LOOK_MS = 10_000;

/**
 * Stands beside a turn that n8n runs twice, in another process or in this one. Whatever this process stores would take the
 * place of what the turn stores. So it waits until the turn is stored, and then stores the same.
 *
 * If the turn has ended the run, this call does not return: n8n would let the items go on a second time.
 *
 * @returns what `execute` returns; undefined if the turn is dead, and this process goes on
 * @throws Stopped if the execution was stopped
 */
export async function standBesideTwin(
	context: IExecuteFunctions,
	journal: Journal,
	lease: TurnLease,
): Promise<INodeExecutionData[][] | undefined> {
	const { name } = context.getNode();
	context.logger.info(
		`${name}: n8n has woken this run twice (execution ${context.getExecutionId()}, turn ${journal.sleeps}); the other one goes on`,
	);
	for (;;) {
		// Asked before: a turn that has ended is stored a moment later.
		const isAlive = await lease.isAlive();
		const stored = await storedContext(context);
		const end = stored === 'gone' ? 'ended' : stored && journal.endOfTurn(stored.kept);
		if (end === 'ended') return await new Promise(() => undefined);
		if (end === 'asleep' && typeof stored === 'object' && stored.wakeAt !== undefined) {
			Object.assign(nodeContext(context), stored.kept);
			return await suspend(context, journal, stored.wakeAt);
		}
		if (!isAlive) return undefined;
		await clock.sleep(LOOK_MS, context.getExecutionCancelSignal());
	}
}
