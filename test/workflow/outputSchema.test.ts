import type { IDataObject } from 'n8n-workflow';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

import { MediaGenerationTrigger } from '../../nodes/MediaGeneration/MediaGenerationTrigger.node';
import { inTableOrder } from '../../nodes/MediaGeneration/shared/itemError';
import { listen } from '../listen';
import { executeContext } from './engine';
import { useProcessedData } from './processedData';
import { stage } from './support';

const on = stage();

/** Where n8n looks for them: version of the node, resource, operation. The nodes share a folder, not a path in it. */
const FOLDER = join(__dirname, '../../nodes/MediaGeneration/__schema__');

const paths = readdirSync(FOLDER, { recursive: true, encoding: 'utf8' })
	.filter((path) => path.endsWith('.json'))
	.map((path) => path.replaceAll('\\', '/').replace(/\.json$/, ''));

let trigger: Awaited<ReturnType<typeof listen>>;
useProcessedData();
beforeAll(async () => {
	trigger = await listen((request, response) => {
		request.resume().on('end', () => response.end('{"accepted":true}'));
	});
});
afterAll(async () => await trigger.close());

/** The schema of a value, as n8n makes it of what a node has put out. */
function schemaOf(value: unknown): unknown {
	if (Array.isArray(value)) return { type: 'array', items: schemaOf(value[0]) };
	if (typeof value !== 'object' || value === null) return { type: typeof value };
	const properties = Object.fromEntries(
		// What is in a record is the service's own affair.
		Object.entries(value).map(([name, entry]) => [
			name,
			name === 'record' ? { type: 'object', properties: {} } : schemaOf(entry),
		]),
	);
	return { type: 'object', properties };
}

/** Runs a node as it comes from the panel, with what is required filled in. */
const outputs: Record<string, () => Promise<IDataObject | undefined>> = {
	'v1.0.0/image/generate': async () => await run({ prompt: 'A' }),
	'v1.0.0/video/generate': async () =>
		await run({
			resource: 'video',
			prompt: 'A',
			imageUrl: 'https://example.com/a.png',
			durationSeconds: 5,
		}),
	'v1.0.0/task/create': async () =>
		await run({ resource: 'task', operation: 'create', model: 'a/b', input: '{"prompt":"A"}' }),
	'v1.0.0/task/get': async () =>
		await run({ resource: 'task', operation: 'get', taskId: on.finishedTask() }),
	'v1.0.0/task/wait': async () =>
		await run({ resource: 'task', operation: 'wait', taskId: on.finishedTask() }),
	'v1.0.0/task/redeliver': async () => {
		const callbackUrl = `${trigger.url}/webhook/x/callback`;
		return await run({
			resource: 'task',
			operation: 'redeliver',
			taskId: on.finishedTask(),
			callbackUrl,
		});
	},
	'v1.0.0/getBalance': async () => {
		const { output } = await on.run({ type: 'mediaGenerationCredits' });
		return output[0]?.json;
	},
	'v1.0.0': async () => {
		const record = { state: 'SUCCESS', resultUrls: ['https://m/1.png'], creditsConsumed: 1 };
		const node = { type: 'mediaGenerationTrigger' };
		const items = [{ json: { taskId: 'task-1', record } }];
		const context = executeContext(on.workflow(node, items));
		const [output] = await new MediaGenerationTrigger().execute.call(context);
		return output?.[0]?.json;
	},
};

async function run(parameters: IDataObject): Promise<IDataObject | undefined> {
	const { output } = await on.run({ parameters });
	return output[0]?.json;
}

it('stands for each output there is', () => {
	expect([...paths].sort()).toEqual(Object.keys(outputs).sort());
});

/** Operations whose items may fail: the preview shows where the reason will be. */
const MAY_FAIL = /(generate|create|wait|redeliver)$/;

it.each(paths)('%s has the fields that the node puts out, in their order', async (path) => {
	const output = await outputs[path]?.();
	const shown = MAY_FAIL.test(path) ? inTableOrder({ ...output, error: 'why' }) : output;
	const schema: unknown = JSON.parse(readFileSync(join(FOLDER, `${path}.json`), 'utf8'));
	expect(JSON.stringify({ ...(schemaOf(shown) as object), version: 1 })).toBe(
		JSON.stringify(schema),
	);
});
