import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';

import type { N8nProcess } from './process';

const run = promisify(execFile);

/** Prints the rows that a statement brings as JSON. Its arguments: the driver, the database, the statement. */
const QUERY = `
	const [driver, file, statement] = process.argv.slice(1);
	const { Database } = require(driver);
	const database = new Database(file);
	// n8n may be writing.
	database.configure('busyTimeout', 10_000);
	database.all(statement, (error, rows) => {
		if (error) throw error;
		console.log(JSON.stringify(rows));
	});
`;

/**
 * Runs a statement on the SQLite database of a running n8n, with n8n's own driver.
 *
 * @returns the rows, where it brings any
 * @throws where the statement is refused
 */
export async function querySqlite(
	{ install, userFolder }: Pick<N8nProcess, 'install' | 'userFolder'>,
	statement: string,
): Promise<Array<Record<string, string | number | null>>> {
	const { stdout } = await run(install.nodeBinary, [
		'-e',
		QUERY,
		join(install.folder, 'node_modules', 'sqlite3'),
		join(userFolder, '.n8n', 'database.sqlite'),
		statement,
	]);
	return JSON.parse(stdout);
}
