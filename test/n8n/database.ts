import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';

import type { N8nProcess } from './process';

const run = promisify(execFile);

export type Row = Record<string, string | number | null>;

/** Prints the rows of the last statement as JSON; several statements are one transaction. */
const SCRIPT = `
	const { DatabaseSync } = require('node:sqlite');
	const { file, statements } = JSON.parse(process.argv[1]);
	// n8n may be writing.
	const database = new DatabaseSync(file, { timeout: 10_000 });
	if (statements.length > 1) database.exec('BEGIN IMMEDIATE');
	const rows = statements.map((sql) => database.prepare(sql).all());
	if (statements.length > 1) database.exec('COMMIT');
	console.log(JSON.stringify(rows.at(-1) ?? []));
`;

/** Runs statements on the SQLite database of an n8n, as one transaction. @returns the rows that the last one brings */
export async function querySqlite(
	{ install, userFolder }: Pick<N8nProcess, 'install' | 'userFolder'>,
	...statements: string[]
): Promise<Row[]> {
	const file = join(userFolder, '.n8n', 'database.sqlite');
	// n8n's own Node.js has SQLite built in; the one that runs this may not have it.
	const parameters = ['-e', SCRIPT, JSON.stringify({ file, statements })];
	const { stdout } = await run(install.nodeBinary, parameters);
	return JSON.parse(stdout) as Row[];
}

/** @returns a text or a number as SQL has it */
export function literal(value: string | number): string {
	return typeof value === 'number' ? String(value) : `'${value.replaceAll("'", "''")}'`;
}
