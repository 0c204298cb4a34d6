import { partsOf, readOptions, wholeNumber } from '../commandLine';

/** What is measured where nothing else is asked for; `limits` needs no n8n. */
const USUAL = ['batch', 'callback', 'suspended', 'startup', 'limits'] as const;

/** What takes longer, or more of the machine: only where it is asked for by name. */
const LARGE = ['large', 'cluster', 'soak'] as const;

/** The parts that can be measured one without the other. */
const SECTIONS = [...USUAL, ...LARGE] as const;
export type Section = (typeof SECTIONS)[number];

/** What the benchmark's command line says. */
export interface BenchOptions {
	only: readonly Section[];
	/** How many times each figure is measured. */
	runs: number;
	/** How long the soak takes. */
	minutes: number;
	/** Small batches and few calls: to see that it works, not for figures. */
	quick: boolean;
	/** Compare the results with the budget, and fail where they exceed it. */
	check: boolean;
	/** Compare the stored results, and measure nothing. */
	checkOnly: boolean;
	/** Draw the stored results anew, and measure nothing. */
	drawOnly: boolean;
	/** Folder that the results, the table and the charts are written to; a quick run leaves docs/ alone. */
	output: string | undefined;
}

const USAGE = `Usage: npm run bench -- [options]

  --only <names>   measure only these, with commas between: ${USUAL.join(', ')}; and
                   what is not measured unless it is named: ${LARGE.join(', ')}
  --runs <n>       times that each figure is measured (default 3, 1 with --quick)
  --minutes <n>    for soak: how long it takes (default 45)
  --quick          small batches and few calls, written to test/artefacts/bench
  --check          compare the results with test/bench/budget.json: 1 where one is exceeded
  --check-only     the same with the stored results, without measuring
  --draw-only      write the table and the charts from the stored results
  --output <path>  write to another folder than docs/bench`;

/** @throws where an argument is not understood */
export function parseOptions(): BenchOptions {
	const values = readOptions(USAGE, {
		only: { type: 'string' },
		runs: { type: 'string' },
		minutes: { type: 'string', default: '45' },
		quick: { type: 'boolean', default: false },
		check: { type: 'boolean', default: false },
		'check-only': { type: 'boolean', default: false },
		'draw-only': { type: 'boolean', default: false },
		output: { type: 'string' },
	});
	const runs = wholeNumber('runs', values.runs ?? (values.quick ? '1' : '3'));
	const minutes = wholeNumber('minutes', values.minutes);
	if (values.quick && values.check) {
		throw new Error('--quick measures too little to be held against the budget with --check.');
	}
	return {
		only: values.only === undefined ? USUAL : partsOf(SECTIONS, values.only),
		runs,
		minutes,
		quick: values.quick,
		check: values.check || values['check-only'],
		checkOnly: values['check-only'],
		drawOnly: values['draw-only'],
		output: values.output,
	};
}
