import Table from 'cli-table3';
import type { TaskResult } from './batch';

const PROMPT_WIDTH = 34;
/** Room for the address of a picture in one piece, so that a terminal makes a link of it. */
const RESULT_WIDTH = 79;

/** @returns the results as a table for a terminal, without colours, so that it can go into a file too */
export function renderTable(results: TaskResult[]): string {
	const table = new Table({
		head: ['Prompt', 'State', 'Credits', 'Task and result'],
		colAligns: ['left', 'left', 'right', 'left'],
		colWidths: [PROMPT_WIDTH, null, null, RESULT_WIDTH],
		style: { head: [], border: [] },
		wordWrap: true,
	});
	for (const { prompt, taskId, state, credits, url, reason } of results) {
		const result = `${taskId ?? '–'}\n${url ?? reason ?? '–'}`;
		table.push([prompt, state ?? '–', credits ?? '–', result]);
	}
	return table.toString();
}
