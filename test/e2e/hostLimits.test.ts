import { readFileSync } from 'node:fs';

import { outputItems } from '../n8n/client';
import { AT_ONCE } from './atOnce';
import { needing } from './needs';
import { inARow, manualTrigger, node, Stage } from './stage';

/** Suspended runs on an n8n that is short of memory for expressions, and limits how long executions may take. */

let stage: Stage;
beforeAll(async () => {
	stage = await Stage.open({
		N8N_EXPRESSION_ENGINE_MEMORY_LIMIT: '8',
		EXECUTIONS_TIMEOUT: '900',
	});
}, 900_000);
afterAll(async () => await stage?.close());

const COUNT = 40;

/** Much text for each item: more of them together than an expression may hold. */
const MUCH = 500_000;

needing('endOfSubExecutions', 'Limits of n8n').test(
	'a run that is too large for an expression comes out complete, and is warned of the time limit of n8n',
	async () => {
		const { client, service } = stage;
		service.configure({ latencyMs: [3_000, 6_000] });
		const workflow = await client.createWorkflow({
			name: 'Large',
			...inARow(
				manualTrigger(),
				node(
					'n8n-nodes-base.code',
					'Prompts',
					{
						jsCode: `return Array.from({ length: ${COUNT} }, (_, index) => ({ json: { prompt: index + ' '.padEnd(${MUCH}, 'x') } }));`,
					},
					2,
				),
				stage.mediaNode('mediaGeneration', 'Media', {
					resource: 'image',
					operation: 'generate',
					prompt: '={{ $json.prompt }}',
					options: AT_ONCE,
				}),
			),
		});
		const id = await client.run(workflow.id);
		await client.waitForSuspension(id);
		const execution = await client.waitForExecution(id, 240_000);
		expect(execution.status).toBe('success');
		const items = outputItems(execution, 'Media');
		expect(items.map(({ json }) => json.state)).toEqual(Array(COUNT).fill('SUCCESS'));
		expect(execution.data.resultData.runData).toHaveProperty('Prompts');
		const log = readFileSync(stage.runner.logFile, 'utf8');
		expect(log).toMatch(/This workflow has a time limit of (900|8\d\d) s/);
	},
	400_000,
);
