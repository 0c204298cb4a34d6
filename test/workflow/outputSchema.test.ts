import type { IDataObject } from 'n8n-workflow';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

import { parseTaskRecord } from '../../nodes/MediaGeneration/service/taskRecord';
import { inTableOrder } from '../../nodes/MediaGeneration/shared/itemError';
import { listen } from '../listen';
import { startTrigger, TRIGGER } from './engine';
import { useProcessedData } from './processedData';
import { stage } from './support';
import { passTime } from './time';

const on = stage();
useProcessedData();

/** Where n8n looks for them: version of the node, resource, operation. The nodes share a folder, not a path in it. */
const FOLDER = join(__dirname, '../../nodes/MediaGeneration/__schema__');

const paths = readdirSync(FOLDER, { recursive: true, encoding: 'utf8' })
	.filter((path) => path.endsWith('.json'))
	.map((path) => path.replaceAll('\\', '/').replace(/\.json$/, ''));

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

const run = async (parameters: IDataObject, type = 'mediaGeneration') =>
	await on.run({ type, parameters });
const taskRun = async (operation: string, more: IDataObject = { taskId: on.finishedTask() }) =>
	await run({ resource: 'task', operation, ...more });

/** Runs a node as it comes from the panel, with what is required filled in. */
const runs: Record<string, () => ReturnType<typeof run>> = {
	'v1.0.0/image/generate': async () => await run({ prompt: 'A' }),
	'v1.0.0/video/generate': async () => {
		const picture = { imageUrl: 'https://example.com/a.png', durationSeconds: 5 };
		return await run({ resource: 'video', prompt: 'A', ...picture });
	},
	'v1.0.0/task/create': async () =>
		await taskRun('create', { model: 'a/b', input: '{"prompt":"A"}' }),
	'v1.0.0/task/get': async () => await taskRun('get'),
	'v1.0.0/task/wait': async () => await taskRun('wait'),
	'v1.0.0/task/redeliver': async () => {
		const { url, close } = await listen((request, response) => {
			request.resume().on('end', () => response.end('{"accepted":true}'));
		});
		const callbackUrl = `${url}/webhook/x/callback`;
		const ran = await taskRun('redeliver', { taskId: on.finishedTask(), callbackUrl });
		await close();
		return ran;
	},
	'v1.0.0/getBalance': async () => await run({}, 'mediaGenerationCredits'),
	'v1.0.0': async () => {
		const record = { state: 'SUCCESS', resultUrls: ['https://m/1.png'], creditsConsumed: 1 };
		const task = parseTaskRecord('task-1', { taskId: 'task-1', ...record });
		const json = { taskId: 'task-1', task: { ...task } } as IDataObject;
		return await passTime(startTrigger(on.workflow(TRIGGER), [{ json }]));
	},
};

it('stands for each output there is', () => {
	expect([...paths].sort()).toEqual(Object.keys(runs).sort());
});

/** Operations whose items may fail: the preview shows where the reason will be. */
const MAY_FAIL = /(generate|create|wait|redeliver)$/;

it.each(Object.entries(runs))(
	'%s has the fields that the node puts out, in their order',
	async (path, ran) => {
		const [item] = (await ran()).output;
		const shown = MAY_FAIL.test(path)
			? inTableOrder({ ...item?.json, error: 'why', advice: 'what to do' })
			: item?.json;
		const file = readFileSync(join(FOLDER, `${path}.json`), 'utf8');
		const schema = { ...(schemaOf(shown) as object), version: 1 };
		expect(JSON.stringify(schema)).toBe(JSON.stringify(JSON.parse(file)));
	},
);
