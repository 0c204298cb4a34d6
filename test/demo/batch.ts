import type { SimulatedService, SimulatedTask } from '../service/service';
import {
	type N8nClient,
	type StoredWorkflow,
	type WorkflowDefinition,
	describe,
	outputItems,
} from '../n8n/client';
const GENERATE = 'Generate images';
const PROMPTS = 'Prompts';
const TIMEOUT_MS = 5 * 60_000;
const LOOK_EVERY_MS = 100;

type FinalState = 'SUCCESS' | 'FAILURE';

/** A prompt of the example batch and how its task is to end. */
export interface ExpectedTask {
	prompt: string;
	state: FinalState;
}

/** A prompt of the example batch and how its task ended. */
export interface TaskResult {
	prompt: string;
	taskId?: string;
	state?: string;
	credits?: number;
	/** Address of the picture. */
	url?: string;
	/** Why there is none. */
	reason?: string;
}

/**
 * @param definition the workflow of `examples/batch-of-prompts.json`
 * @returns its prompts; a prompt that is told to fail is expected to
 */
export function expectedTasks(definition: WorkflowDefinition): ExpectedTask[] {
	const json = definition.nodes.find(({ name }) => name === PROMPTS)?.parameters.jsonOutput;
	const { prompts } = JSON.parse(String(json)) as {
		prompts: Array<{ prompt: string; additionalInput?: { simulate?: { outcome?: FinalState } } }>;
	};
	return prompts.map(({ prompt, additionalInput }) => ({
		prompt,
		state: additionalInput?.simulate?.outcome ?? 'SUCCESS',
	}));
}

/**
 * Runs the example batch in n8n, as the editor's button does, and waits for its end.
 *
 * @param onProgress takes the number of finished tasks, whenever it has changed
 * @returns one result for each prompt, in their order
 * @throws where the execution itself does not succeed
 */
export async function runBatch(
	client: N8nClient,
	workflow: StoredWorkflow,
	expected: ExpectedTask[],
	service: SimulatedService,
	onProgress: (finished: number) => void,
): Promise<TaskResult[]> {
	const before = new Set(service.tasks.keys());
	const ownTasks = () => [...service.tasks.values()].filter(({ taskId }) => !before.has(taskId));
	const looking = setInterval(
		() => onProgress(ownTasks().filter(({ record }) => record.state !== 'PENDING').length),
		LOOK_EVERY_MS,
	);
	try {
		const id = await client.run(workflow.id);
		const execution = await client.waitForExecution(id, TIMEOUT_MS);
		if (execution.status !== 'success') {
			throw new Error(`The batch (execution ${id}) did not succeed: ${describe(execution)}`);
		}
		const items = outputItems(execution, GENERATE).map(({ json }) => json as Partial<ItemFields>);
		const tasks = ownTasks();
		onProgress(tasks.filter(({ record }) => record.state !== 'PENDING').length);
		return expected.map(({ prompt }, index) => toResult(prompt, items[index], tasks));
	} finally {
		clearInterval(looking);
	}
}

/** What the node puts out: of a success, or of a failure that goes on as an item. */
interface ItemFields {
	taskId: string;
	state: string;
	creditsConsumed: number;
	resultUrls: string[];
	error: string;
}

/** The node's own words; for a failure, which has no fields but the reason, the service adds the rest. */
function toResult(
	prompt: string,
	item: Partial<ItemFields> | undefined,
	tasks: SimulatedTask[],
): TaskResult {
	const record = tasks.find((task) => task.record.input.prompt === prompt)?.record;
	return {
		prompt,
		taskId: item?.taskId ?? record?.taskId,
		state: item?.state ?? (item?.error === undefined ? undefined : record?.state),
		credits: item?.creditsConsumed ?? record?.creditsConsumed,
		url: item?.resultUrls?.[0],
		reason: item?.error,
	};
}

/**
 * @returns a statement for every prompt whose task did not end as expected: in the expected state, a success
 * with a picture, a failure with its reason
 */
export function differences(expected: ExpectedTask[], results: TaskResult[]): string[] {
	return expected.flatMap(({ prompt, state }, index) => {
		const result = results[index];
		if (result?.state !== state) {
			const end = result?.state ? `ended with ${result.state}` : 'has no finished task';
			const reason = result?.reason ? `: ${result.reason}` : '';
			return [`"${prompt}" was to end with ${state}, but ${end}${reason}`];
		}
		if (state === 'SUCCESS' && !result?.url) return [`"${prompt}" succeeded without a picture`];
		if (state === 'FAILURE' && !result?.reason) return [`"${prompt}" failed without a reason`];
		return [];
	});
}
