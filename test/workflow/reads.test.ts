import type { Settings } from '../service/settings';
import { isTerminal } from './n8n/database';
import { type StoredRun, WorkflowN8n } from './n8n/workflowN8n';
import { useProcessedData } from './processedData';
import { field, imageNode, keepsGoing, many, MINUTE, prompts, SECOND, stage } from './support';
import { pass, passUntil } from './time';

/** A wait ends before its time only when the service has said for five minutes, in several answers, that there is no such task. */

useProcessedData();
const on = stage();

const NO_ROUTE = { status: 404, body: { message: 'no Route matched' } };
const NO_TASK = { status: 404, body: { error: 'Task not found' } };

const begin = (node: object, items: Parameters<typeof on.workflow>[1]) =>
	new WorkflowN8n(on.workflow(node as Parameters<typeof on.workflow>[0], items)).begin();
const errorsIn = async (run: StoredRun) => {
	await passUntil(() => isTerminal(run.row.status));
	const runs = run.data.resultData.runData.Media ?? [];
	const items = runs.flatMap(({ data }) => data?.main?.[0] ?? []);
	return { items: items.length, errors: field(items, 'error').filter(Boolean) };
};

const task = (operation: string) => ({
	...keepsGoing,
	parameters: {
		resource: 'task',
		operation,
		taskId: '={{ $json.id }}',
		downloadResults: false,
		options: {},
	},
});
const finished = (count: number) =>
	Array.from({ length: count }, () => ({ json: { id: on.finishedTask() } }));

it.each<[string, Settings['readStatus']]>([
	["a firewall's 403", { status: 403, body: '<html>403</html>' } as never],
	["a gateway's 404", NO_ROUTE as never],
])(
	'Wait for Task and Get of finished tasks live through 15 s of %s at their first read',
	async (_what, readStatus) => {
		for (const operation of ['wait', 'get']) {
			on.service.configure({ readStatus });
			const run = begin(task(operation), finished(10));
			await pass(15 * SECOND);
			on.service.resetSettings();
			expect(await errorsIn(run)).toEqual({ items: 10, errors: [] });
		}
	},
);

it('two answers of 404, a quarter of an hour apart, end no task', async () => {
	const run = begin(imageNode({}, keepsGoing), prompts(...many(1, 7200 * SECOND)));
	await passUntil(() => on.elapsed > 60 * MINUTE && run.row.status === 'waiting');
	const answers = () => on.requests('GET').filter(({ status }) => status === 404).length;
	on.service.configure({ readStatus: NO_ROUTE as never });
	await passUntil(() => isTerminal(run.row.status) || answers() === 2);
	on.service.resetSettings();
	expect(await errorsIn(run)).toEqual({ items: 1, errors: [] });
});

it.each([
	// The five minutes end in the first turn after the run has slept.
	['wait', 5 * MINUTE, 7 * MINUTE],
	['get', 30 * SECOND, 40 * SECOND],
])(
	'a task that the service does not know ends %s after a while of answers',
	async (operation, least, most) => {
		on.service.configure({ readStatus: NO_TASK as never });
		const { errors } = await errorsIn(begin(task(operation), [{ json: { id: 'no-such-task' } }]));
		expect(errors).toEqual([expect.stringMatching(/knows no such task.*\(task no-such-task\)/)]);
		expect(on.elapsed).toBeGreaterThanOrEqual(least);
		expect(on.elapsed).toBeLessThan(most);
	},
);
