/**
 * Parts of a history that do not happen yet, and sentences that are not asked yet, since the nodes do not keep them.
 * `SIMULATE_ALL=1 npm run simulate` has all of them.
 */
const AFTER_REDESIGN: readonly string[] = [
	'hasUploads',
	'unfit',
	'longPauses',
	'windows',
	'forgotten',
	'storeOutages',
	'moreKills',
	'doubleWakes',
	'an item in doubt was sent, or was about to be',
	'the rows of a run are gone when the run has ended',
	'no item of a run that may sleep is refused for want of time in a turn',
];

export const isAwaited = (name: string): boolean =>
	process.env.SIMULATE_ALL === undefined && AFTER_REDESIGN.includes(name);
