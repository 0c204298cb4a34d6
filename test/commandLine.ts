import { parseArgs, type ParseArgsConfig } from 'node:util';

/** @throws where the text of this option is no whole number of at least 1 */
export function wholeNumber(name: string, text: string): number {
	const value = Number(text);
	if (!Number.isInteger(value) || value < 1) {
		throw new Error(`--${name} takes a whole number from 1 on, not "${text}".`);
	}
	return value;
}

/** Reads names of parts, with commas between. @throws where one of them is not known */
export function partsOf<T extends string>(known: readonly T[], text: string): T[] {
	return text.split(',').map((name) => {
		const found = known.find((each) => each === name.trim());
		if (found === undefined) {
			throw new Error(`There is no part "${name}". There are: ${known.join(', ')}.`);
		}
		return found;
	});
}

type Options = NonNullable<ParseArgsConfig['options']>;
type Values<T extends Options> = ReturnType<typeof parseArgs<{ options: T }>>['values'];

/** Reads the options of a command. `--help` prints the usage and ends the process. @throws for unknown ones */
export function readOptions<T extends Options>(usage: string, options: T): Values<T> {
	const help = { type: 'boolean', short: 'h', default: false } as const;
	const { values } = parseArgs({ options: { ...options, help } });
	if (!(values as { help?: boolean }).help) return values as Values<T>;
	console.log(usage);
	process.exit();
}

/** @returns the time since a moment, for a person */
export function elapsed(start: number): string {
	const seconds = Math.round((Date.now() - start) / 1000);
	return seconds < 60 ? `${seconds} s` : `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}

/**
 * Runs a command to its end: what is still open, such as a connection that was kept alive, must not hold it up.
 *
 * @param main returns false where it checked something that is not well
 */
export function runCommand(main: () => Promise<boolean | void> | void): void {
	Promise.resolve()
		.then(main)
		.then(
			(isWell) => process.exit(isWell === false ? 1 : undefined),
			(error: unknown) => {
				console.error(`\n${error instanceof Error ? error.message : String(error)}`);
				process.exit(1);
			},
		);
}
