import { type Clock, withTimeLimit } from '../shared/clock';

/** Between two looks whether a transfer goes on. */
const LOOK_MS = 5_000;

/**
 * Waits for a transfer, unless it stands still: n8n's timeout ends with the header of the answer, so nobody else would
 * ever give it up, and with it a run whose tasks are all paid for.
 *
 * @param transfer ends with the transfer
 * @param progress how much has come; undefined where all has
 * @param stillMs for so long nothing may come, milliseconds
 * @returns what the transfer brings; undefined where it stands still
 */
export async function unlessStalled<T extends object>(
	transfer: Promise<T>,
	progress: () => number | undefined,
	stillMs: number,
	clock: Clock,
): Promise<T | undefined> {
	for (let still = 0; still < stillMs;) {
		const before = progress();
		const ended = await withTimeLimit(transfer, LOOK_MS, clock);
		if (ended !== undefined) return ended;
		const now = progress();
		still = now === undefined || now !== before ? 0 : still + LOOK_MS;
	}
	return undefined;
}
