import { isTerminal } from './n8n/database';
import { WorkflowN8n } from './n8n/workflowN8n';
import { useProcessedData } from './processedData';
import { field, IMAGE_MODEL, SECOND, stage } from './support';
import { pass, passUntil } from './time';

useProcessedData();
const on = stage();

it.each<[string, object]>([
	['text', { status: 404, body: '404 page not found', contentType: 'text/plain' }],
	['JSON', { status: 404, body: { message: 'no Route matched with those values' } }],
	['a page', { status: 404, body: '<html>404</html>' }],
])(
	'Task: Wait waits on for tasks that it has read, while a proxy answers 404 with %s for 15 s',
	async (_what, refusal) => {
		on.service.configure({ latencyMs: 60 * SECOND });
		const ids = [1, 2].map(() => on.service.createTask(IMAGE_MODEL, { prompt: 'x' }).taskId);
		const parameters = { resource: 'task', operation: 'wait', taskId: ids.join(',') };
		const n8n = new WorkflowN8n(on.workflow({ parameters }));
		const run = n8n.begin();
		await pass(20 * SECOND);
		expect(on.requests('GET', '/api/generate/').length).toBeGreaterThan(4);
		on.service.configure({ readStatus: refusal as never });
		await pass(15 * SECOND);
		on.service.resetSettings();
		await passUntil(() => isTerminal(run.row.status));
		expect(run.row.status).toBe('success');
		expect(field(run.ran.output, 'state')).toEqual(['SUCCESS', 'SUCCESS']);
	},
);
