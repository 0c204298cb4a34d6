import { partsOf, readOptions } from '../commandLine';

/** The parts that can be run one without the other. */
const PARTS = ['silent', 'kills', 'held', 'queue', 'lost', 'chaos'] as const;
export type PartName = (typeof PARTS)[number];

/** What the command line says. */
export interface ChaosOptions {
	only: readonly PartName[];
	/** How long `chaos` goes on starting runs and killing processes. */
	minutes: number;
	/** Decides what is started, what goes wrong, and when. */
	seed: number;
	/** Small figures: to see that it works. They are written to test/artefacts/chaos. */
	quick: boolean;
	/** Write the page from the stored results, and run nothing. */
	drawOnly: boolean;
}

const USAGE = `Usage: npm run chaos -- [options]

  --minutes <n>   how long processes are killed at random (default 30)
  --seed <n>      what is started, what goes wrong, and when (default 1)
  --only <names>  these parts, with commas between (default chaos): ${PARTS.join(', ')}
  --all           every part
  --quick         small figures, written to test/artefacts/chaos
  --draw-only     write the page from the stored results`;

/** @throws where an argument is not understood */
export function parseOptions(): ChaosOptions {
	const values = readOptions(USAGE, {
		minutes: { type: 'string', default: '30' },
		seed: { type: 'string', default: '1' },
		only: { type: 'string', default: 'chaos' },
		all: { type: 'boolean', default: false },
		quick: { type: 'boolean', default: false },
		'draw-only': { type: 'boolean', default: false },
	});
	const minutes = Number(values.minutes);
	if (!(minutes > 0)) throw new Error(`--minutes takes a number, not "${values.minutes}".`);
	const seed = Number(values.seed);
	if (!Number.isInteger(seed)) {
		throw new Error(`--seed takes a whole number, not "${values.seed}".`);
	}
	return {
		only: values.all ? PARTS : partsOf(PARTS, values.only),
		minutes,
		seed,
		quick: values.quick,
		drawOnly: values['draw-only'],
	};
}
