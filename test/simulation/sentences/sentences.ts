import type { World } from '../world/world';
import { batch } from './batch';
import { builder } from './builder';
import { payer } from './payer';
import { retrier } from './retrier';
import { trigger } from './trigger';

export interface Violation {
	/** The sentence of the contract that does not hold. */
	sentence: string;
	/** Whose sentence it is. */
	user: string;
	what: string;
}

/** What contradicts a sentence in a history. */
export type Check = (world: World) => string[];

const of = (user: string, checks: Record<string, Check>) =>
	Object.entries(checks).map(([sentence, check]) => [sentence, { user, check }] as const);

/** The sentences of the contract, and whom each one is for. */
export const sentences: Record<string, { user: string; check: Check }> = Object.fromEntries([
	...of('whoever pays', payer),
	...of('who runs a batch', batch),
	...of('who stops, restarts and retries', retrier),
	...of('who builds on the items', builder),
	...of('who has a trigger', trigger),
]);
