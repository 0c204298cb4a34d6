import { resolve } from 'node:path';

import { type History, PLAIN } from './history';
import { simulate } from './simulate';
import { NodeSources } from './world/nodeSources';

const sources = new NodeSources(resolve(__dirname, '../..'));

/** Histories that once violated the contract, made as short as they could be. */
const FOUND: Array<[what: string, history: History]> = [
	[
		'a run is stopped while it creates, and its retry is suspended: the error of the first stays with the retry',
		{
			...PLAIN,
			node: { ...PLAIN.node, suspendAfter: 0, items: 2 },
			service: { ...PLAIN.service, maxUnfinished: 1, longestTaskMs: 10_000 },
			acts: [
				{ at: 220, what: 'stop' },
				{ at: 270, what: 'retry' },
			],
		},
	],
	[
		'two workers find no row of a task in the same milliseconds, and the later one never hears what it wrote',
		{
			...PLAIN,
			n8n: 'queue mode',
			slowestQueryMs: 60,
			node: { ...PLAIN.node, completion: 'trigger' },
			trigger: { ...PLAIN.trigger, maxTries: 2 },
			service: { ...PLAIN.service, sendsTwice: true },
			ledgerTroubles: [{ nth: 1, isWritten: true }],
		},
	],
];

describe('a history that once went wrong', () => {
	it.each(FOUND)('%s', async (_, history) => {
		expect((await simulate(history, sources)).violations).toEqual([]);
	});
});
