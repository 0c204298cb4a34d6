import type { SimulatedService } from '../../test/service/service';
import { type N8nClient, type StoredWorkflow, describe, outputItems } from '../../test/n8n/client';
import { promptsOf } from '../../test/n8n/examples';

const TIMEOUT_MS = 5 * 60_000;
const LOOK_EVERY_MS = 100;

/** What the node puts out: of a success, or of a failure that goes on as an item. */
interface Item {
	state?: string;
	resultUrls?: string[];
	creditsConsumed?: number;
	error?: string;
}

/**
 * Runs the example batch in n8n, as the editor's button does, and prints how it goes and a table of what came out.
 *
 * @returns whether each prompt has its picture, or a reason where its task was to fail
 * @throws where the execution itself does not succeed
 */
export async function runBatch(
	client: N8nClient,
	workflow: StoredWorkflow,
	service: SimulatedService,
): Promise<boolean> {
	const prompts = promptsOf(workflow);
	console.log(`\nRunning "${workflow.name}" in n8n: ${prompts.length} prompts`);
	let shown = 0;
	const looking = setInterval(() => {
		const tasks = [...service.tasks.values()];
		const finished = tasks.filter(({ record }) => record.state !== 'PENDING').length;
		if (finished > shown) console.log(`  ${finished} of ${prompts.length} tasks finished`);
		shown = finished;
	}, LOOK_EVERY_MS);
	try {
		const id = await client.run(workflow.id);
		const execution = await client.waitForExecution(id, TIMEOUT_MS);
		if (execution.status !== 'success') {
			throw new Error(`The batch (execution ${id}) did not succeed: ${describe(execution)}`);
		}
		const items = outputItems(execution, 'Generate images').map(({ json }) => json as Item);
		const rows = prompts.map(({ prompt }, index) => {
			const { state, creditsConsumed, resultUrls = [], error } = items[index] ?? {};
			return { prompt, state, credits: creditsConsumed, result: resultUrls[0] ?? error };
		});
		console.table(rows, ['prompt', 'state', 'credits']);
		// Below the table, which would be too wide for a terminal.
		rows.forEach(({ result }, index) => console.log(`  ${String(index).padStart(2)}  ${result}`));
		const failing = prompts.filter(({ additionalInput }) => additionalInput).length;
		const isAsExpected = rows.every(({ state, result }, index) => {
			const expected = prompts[index]?.additionalInput ? 'FAILURE' : 'SUCCESS';
			return state === expected && result !== undefined;
		});
		console.log(
			isAsExpected
				? `As expected: ${rows.length - failing} succeeded and ${failing} failed on purpose.`
				: 'Not as expected.',
		);
		return isAsExpected;
	} finally {
		clearInterval(looking);
	}
}
