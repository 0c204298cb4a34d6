import { isRecord, plainFields, toNumber } from '../shared/json';

/** The usual names of a balance, most telling first, as `plainFields` writes them. */
const BALANCE_NAMES = [
	/^balance$/,
	/^(credits?|available)balance$/,
	/^(available|remaining)credits$|^credits(available|remaining|left)$/,
	/^(remaining|available)$/,
	/^credits?$/,
	/^data$/,
];

/** How deep to look for a balance: `{ data: { account: { balance } } }` is three objects deep. */
const MAX_DEPTH = 3;

/**
 * Finds the credit balance in an answer whose shape the specification does not show (section 4.3).
 *
 * The shallowest object with a usual name decides; within the object the most telling name. A numeric string counts, too.
 *
 * @param body the parsed JSON body, or a bare number
 * @returns the balance, or null if no field is known to be the balance
 */
export function findBalance(body: unknown): number | null {
	const bare = toNumber(body);
	if (bare !== null) return bare;
	let level = [body];
	for (let depth = 0; depth < MAX_DEPTH; depth++) {
		const [found, ...others] = level.map(balanceOf).filter((balance) => balance !== null);
		// Two objects at the same depth name a balance: nobody knows which is meant.
		if (found !== undefined) return others.length === 0 ? found : null;
		level = level.filter(isRecord).flatMap((entry) => Object.values(entry).filter(isRecord));
	}
	return null;
}

function balanceOf(entry: unknown): number | null {
	if (!isRecord(entry)) return null;
	const fields = [...plainFields(entry)];
	const named = BALANCE_NAMES.flatMap((usual) => fields.filter(([name]) => usual.test(name)));
	return named.map(([, value]) => toNumber(value)).find((balance) => balance !== null) ?? null;
}
