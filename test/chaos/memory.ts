import { linearRegression } from 'simple-statistics';

import { Usage } from '../bench/usage';
import { groupBy } from '../groupBy';
import type { Place } from './place';

const EVERY_MIN = 0.25;

/** The memory of one process over its life. */
export interface Life {
	name: string;
	pid: number;
	/** When it was first measured, minutes from the start. */
	from: number;
	/** MiB, every quarter of a minute. */
	mib: number[];
}

/** A process that has just started takes what it needs; what it takes after that is what grows. */
const WARM_AFTER_MIN = 1;

/** Measures the memory of each process of n8n over time. */
export class MemoryLog {
	readonly lives: Life[] = [];

	private readonly timer: NodeJS.Timeout;

	constructor(place: Place) {
		const startedAt = Date.now();
		this.timer = setInterval(() => {
			const from = (Date.now() - startedAt) / 60_000;
			for (const { name, pid } of place.processes()) {
				try {
					const mib = Math.round(new Usage(pid).residentMiB());
					const life = this.lives.find((known) => known.pid === pid);
					if (life !== undefined) life.mib.push(mib);
					else this.lives.push({ name, pid, from, mib: [mib] });
				} catch {
					// It has been killed, and its successor is not there yet.
				}
			}
		}, EVERY_MIN * 60_000);
	}

	stop(): void {
		clearInterval(this.timer);
	}
}

/** The points of a life: minutes of the start of everything, or of its own, and MiB. */
export const pointsOf = ({ mib }: Life, from: number): Array<[number, number]> =>
	mib.map((each, index) => [from + index * EVERY_MIN, each]);

/** How the memory of the processes of one kind went, those that were started anew together. */
export interface Growth {
	name: string;
	processes: number;
	mostMib: number;
	/** MiB for each minute of a process's life after its first; undefined where none lived long enough. */
	mibPerMinute?: number;
}

/** @returns one line for each name */
export function growthOf(lives: readonly Life[]): Growth[] {
	return [...groupBy(lives, ({ name }) => name)].map(([name, own]) => {
		// The age and the memory of each, above what it had when it was warm.
		const points = own.flatMap((life): Array<[number, number]> => {
			const warm = pointsOf(life, 0).filter(([age]) => age >= WARM_AFTER_MIN);
			const base = warm[0]?.[1] ?? 0;
			return warm.map(([age, mib]) => [age - WARM_AFTER_MIN, mib - base]);
		});
		const enough = points.some(([age]) => age > WARM_AFTER_MIN);
		return {
			name,
			processes: own.length,
			mostMib: Math.max(...own.flatMap(({ mib }) => mib)),
			...(enough && { mibPerMinute: linearRegression(points).m }),
		};
	});
}
