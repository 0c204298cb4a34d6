import type { Ran, TestWorkflow } from './engine';
import { startWorkflow } from './engine';
import { fromStored, toStored } from './stored';
import { passTime, time } from './time';

/** More often than any execution of the tests wakes. */
const MOST_WAKES = 500;

/**
 * Has n8n wake an execution that sleeps, at the time that it has asked for: as n8n has stored it.
 *
 * @returns what the next turn comes to
 */
export async function wake(test: TestWorkflow, { run }: Ran): Promise<Ran> {
	const ms = Number(run.waitTill ?? new Date()) - Date.now();
	await passTime(time.pass(Math.max(0, ms)));
	const woken = startWorkflow(test, () => fromStored(toStored(run.data)));
	return await passTime(woken.result);
}

/** Wakes an execution until it sleeps no more. @returns how it ends, and how often it woke */
export async function sleepThrough(test: TestWorkflow, first: Ran) {
	let ran = first;
	let wakes = 0;
	for (; ran.run.waitTill; wakes++) {
		if (wakes === MOST_WAKES) throw new Error('The execution sleeps again and again');
		ran = await wake(test, ran);
	}
	return { ...ran, wakes };
}
