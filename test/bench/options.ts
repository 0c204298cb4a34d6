import { parseArgs } from 'node:util';

/** The parts that can be measured one without the other; `profile` tells where n8n's CPU time goes, `limits` needs no n8n. */
export const SECTIONS = ['batch', 'callback', 'suspended', 'startup', 'profile', 'limits'] as const;
export type Section = (typeof SECTIONS)[number];

/** What the benchmark's command line says. */
export interface BenchOptions {
	only: readonly Section[];
	/** How many times each figure is measured. */
	runs: number;
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

export const USAGE = `Usage: npm run bench -- [options]

  --only <names>   measure only these, with commas between: ${SECTIONS.join(', ')}
  --runs <n>       times that each figure is measured (default 3, 1 with --quick)
  --quick          small batches and few calls, written to test/artefacts/bench
  --check          compare the results with test/bench/budget.json: 1 where one is exceeded
  --check-only     the same with the stored results, without measuring
  --draw-only      write the table and the charts from the stored results
  --output <path>  write to another folder than docs/bench`;

/**
 * @param args the arguments after the script's name
 * @returns the options; undefined where the usage was asked for
 * @throws where an argument is not understood
 */
export function parseOptions(args: string[]): BenchOptions | undefined {
	const { values } = parseArgs({
		args,
		options: {
			only: { type: 'string' },
			runs: { type: 'string' },
			quick: { type: 'boolean', default: false },
			check: { type: 'boolean', default: false },
			'check-only': { type: 'boolean', default: false },
			'draw-only': { type: 'boolean', default: false },
			output: { type: 'string' },
			help: { type: 'boolean', short: 'h', default: false },
		},
	});
	if (values.help) return undefined;
	const runs = Number(values.runs ?? (values.quick ? 1 : 3));
	if (!Number.isInteger(runs) || runs < 1) {
		throw new Error(`--runs takes a whole number from 1 on, not "${values.runs}".`);
	}
	if (values.quick && values.check) {
		throw new Error('--quick measures too little to be held against the budget with --check.');
	}
	return {
		only: values.only === undefined ? SECTIONS : values.only.split(',').map(section),
		runs,
		quick: values.quick,
		check: values.check || values['check-only'],
		checkOnly: values['check-only'],
		drawOnly: values['draw-only'],
		output: values.output,
	};
}

function section(name: string): Section {
	const found = SECTIONS.find((known) => known === name.trim());
	if (found === undefined) {
		throw new Error(`There is no part "${name}". There are: ${SECTIONS.join(', ')}.`);
	}
	return found;
}
