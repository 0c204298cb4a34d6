import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

/**
 * Runs a script with one list of arguments after the other, several at a time. Each prints its result as JSON.
 *
 * @param processes how many work side by side
 * @param take gets each result when it is there
 */
export async function inParallel<T>(
	script: string,
	lists: ReadonlyArray<readonly string[]>,
	processes: number,
	take: (result: T) => void,
): Promise<void> {
	const queue = lists.values();
	const work = async () => {
		for (const args of queue) {
			const all = [...process.execArgv, script, ...args];
			const { stdout } = await promisify(execFile)(process.execPath, all, { maxBuffer: 2 ** 28 });
			take(JSON.parse(stdout) as T);
		}
	};
	await Promise.all(Array.from({ length: processes }, work));
}
