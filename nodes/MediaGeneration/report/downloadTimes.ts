import type { IExecuteFunctions } from 'n8n-workflow';

import { ExpiringCache } from '../shared/clock';

const MOST_TIMES = 10;

/** How long the last downloads of each node took in this process, milliseconds. */
const known = new ExpiringCache<number[]>(60 * 60_000);

/** What a run can tell of the time that its next download takes: that of the longest of the last ones of the node. */
export class DownloadTimes {
	private readonly node: string;

	constructor(context: IExecuteFunctions) {
		this.node = `${context.getWorkflow().id}/${context.getNode().id}`;
	}

	/** Milliseconds; 0 if nothing is known. */
	get longestMs(): number {
		return Math.max(0, ...(known.get(this.node) ?? []));
	}

	note(ms: number): void {
		known.set(this.node, [...(known.get(this.node) ?? []), ms].slice(-MOST_TIMES));
	}
}
