import { type Cell, mostRefusals } from './cell';

const MANY = 400;

/**
 * The least time that any control can reach on average where items leave at once and one task may be unfinished: it
 * knows how long tasks take, each by chance, but is told of an end only by being let in. Between two tasks it chooses
 * moments to ask; what it pays for a refusal is chosen so that it has as many as the bound allows (Lagrange).
 *
 * @returns times the mean time of a task, which is what the oracle needs
 */
export function leastTime(cell: Cell): number {
	const { items, tasks } = cell;
	if (typeof tasks.ms === 'number') return 1;
	const { ms } = tasks;
	const times = Array.from({ length: MANY }, (_, nth) => ms(nth)).sort((a, b) => a - b);
	const mean = times.reduce((sum, time) => sum + time, 0) / MANY;
	const allowed = mostRefusals(cell) / (items - 1);
	let least = 0;
	for (let price = mean / 1000; price < 1000 * mean; price *= 1.1) {
		least = Math.max(least, leastCost(times, price) - price * allowed);
	}
	return least / mean;
}

/** @returns the mean time until it is let in, and the price of all refusals before, with the best moments to ask */
function leastCost(times: readonly number[], price: number): number {
	const count = times.length;
	// From the refusal on that shows that more than so many of the times have passed.
	const cost = new Array<number>(count + 1).fill(0);
	for (let passed = count - 1; passed >= 0; passed--) {
		let best = Infinity;
		for (let next = passed; next < count; next++) {
			const ended = (next + 1 - passed) / (count - passed);
			const rest = (1 - ended) * (price + (cost[next + 1] ?? 0));
			best = Math.min(best, ended * (times[next] ?? 0) + rest);
		}
		cost[passed] = best;
	}
	return cost[0] ?? 0;
}
