import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { IDataObject } from 'n8n-workflow';

import { N8nClient, TEST_OWNER, until } from '../n8n/client';
import { installN8n } from '../n8n/install';
import { installPackage, packPackage } from '../n8n/package';
import { freePort } from '../n8n/ports';
import { type N8nProcess, startN8n } from '../n8n/process';
import { type SimulatedService, startService } from '../service/service';
import { Collector } from './collector';
import { ifAsked } from './needs';
import { inARow, manualTrigger, node, prompts, type Steps } from './nodes';
import { promptOf, statesOf, succeeded } from './run';

/**
 * An update while executions wait, on one user folder. It needs two versions of n8n and some minutes, so it runs where
 * LONG_TESTS is set: `LONG_TESTS=1 npm run test:e2e -- test/e2e/update.test.ts`.
 */
const { describe } = ifAsked('Updates');

const OLD_N8N = '2.0.3';
const NEW_N8N = '2.41.1';
const COUNT = 20;
const MINUTE = 60_000;

/** What was under way when n8n was stopped: suspended runs of one task each, and triggered tasks. */
interface UnderWay {
	suspended: string[];
	suspendedTasks: string[];
	triggeredTasks: string[];
	triggeredId: string;
	/** Of the trigger's webhook. */
	path: string;
}

describe('an update while executions wait', () => {
	let service: SimulatedService;
	let collector: Collector;
	let userFolder: string;
	let port: number;
	let n8n: N8nProcess;
	let client: N8nClient;
	let present: string;

	beforeAll(async () => {
		service = await startService({ settings: { latencyMs: 3_600_000 } });
		collector = await Collector.open();
		present = (await packPackage()).tarball;
	}, 900_000);
	afterAll(async () => {
		await collector?.close();
		await service?.close();
	});
	beforeEach(async () => {
		userFolder = mkdtempSync(join(tmpdir(), 'media-generation-update-'));
		port = await freePort();
		service.resetSettings();
		service.clear();
		collector.reset();
	});
	afterEach(async () => {
		await n8n?.kill();
		rmSync(userFolder, { recursive: true, force: true });
	});

	/** Starts this version of n8n, with the package installed anew. */
	async function start(version: string): Promise<void> {
		await installPackage(userFolder, present);
		const install = await installN8n({ version });
		// A new n8n first brings the database of the old one up to date.
		n8n = await startN8n({ userFolder, port, install, readyTimeoutMs: 5 * MINUTE });
		client = new N8nClient(n8n.url);
	}

	const tasksOf = (prefix: string) =>
		[...service.tasks.values()]
			.filter(({ record }) => promptOf(record).startsWith(prefix))
			.map(({ taskId }) => taskId);

	/** Suspends so many runs, and leaves as many tasks to a trigger. */
	async function begin(): Promise<UnderWay> {
		await client.setUp();
		const { id, name } = await client.createCredential('Media', 'mediaGenerationApi', {
			baseUrl: service.url,
			apiKey: service.apiKey,
		});
		const ours = (type: string, title: string, parameters: IDataObject) => ({
			...node(`n8n-nodes-media-generation.${type}`, title, parameters),
			credentials: { mediaGenerationApi: { id, name } },
		});
		const images = (completion: string, more: IDataObject) =>
			ours('mediaGeneration', 'Media', {
				resource: 'image',
				operation: 'generate',
				prompt: '={{ $json.prompt }}',
				completion,
				...more,
			});
		const create = async (title: string, ...nodes: Steps) =>
			(await client.createWorkflow({ name: title, ...inARow(...nodes) })).id;
		const trigger = {
			...ours('mediaGenerationTrigger', 'Trigger', {}),
			webhookId: crypto.randomUUID(),
		};
		const path = client.webhookPath(trigger, 'callback');
		const triggeredId = await create('Triggered', trigger, collector.node());
		await client.publish(triggeredId, [path]);

		const one = await create(
			'Suspended',
			manualTrigger(),
			prompts('Suspended', [{}]),
			images('wait', { options: { suspendAfter: 0 } }),
			collector.node(),
		);
		const suspended: string[] = [];
		for (let count = 0; count < COUNT; count++) suspended.push(await client.run(one));
		for (const execution of suspended) await client.waitForSuspension(execution, 2 * MINUTE);

		const many = await create(
			'Leaves its tasks to a trigger',
			manualTrigger(),
			prompts('Triggered', Array<IDataObject>(COUNT).fill({})),
			images('trigger', { callbackUrl: n8n.url + path, options: { maxInFlight: COUNT } }),
		);
		succeeded(await client.waitForExecution(await client.run(many)));
		return {
			suspended,
			suspendedTasks: tasksOf('Suspended'),
			triggeredTasks: tasksOf('Triggered'),
			triggeredId,
			path,
		};
	}

	/** Ends all tasks and delivers each callback twice, as senders do. */
	async function finish({ suspendedTasks, triggeredTasks }: UnderWay): Promise<void> {
		for (const taskId of [...suspendedTasks, ...triggeredTasks]) service.complete(taskId);
		for (const taskId of [...suspendedTasks, ...triggeredTasks]) {
			await service.deliverCallback(taskId, { copies: 2 });
		}
	}

	/** All of it came out, each once, and nothing was created but the tasks of before. */
	async function expectAll(underWay: UnderWay, label: string): Promise<void> {
		const { suspended, suspendedTasks, triggeredTasks, triggeredId } = underWay;
		const all = [...suspendedTasks, ...triggeredTasks].sort();
		await collector.settle(all.length, 4 * MINUTE);
		for (const execution of suspended) {
			const ended = await client.waitForExecution(execution, 3 * MINUTE);
			expect(statesOf(succeeded(ended))).toEqual(['SUCCESS']);
		}
		await until('the trigger to be done', MINUTE, async () => {
			const list = await client.listExecutions({ workflowId: triggeredId });
			return list.every(({ status }) => status === 'success');
		});
		const creates = service.requests.filter(
			({ host, method }) => host === 'api' && method === 'POST',
		).length;
		console.log(
			`${label}: ${suspended.length} suspended runs and ${triggeredTasks.length} triggered tasks under way; ` +
				`${creates} creates, ${collector.seen.length} items came out, ${new Set(collector.seen).size} of them different`,
		);
		expect([...collector.seen].sort()).toEqual(all);
		expect(creates).toBe(2 * COUNT);
	}

	test.each([
		[`n8n ${OLD_N8N} becomes ${NEW_N8N}`, OLD_N8N],
		['the package is installed anew', NEW_N8N],
	])(
		'%s: nothing is lost, nothing comes twice',
		async (label, before) => {
			await start(before);
			const underWay = await begin();
			const { suspendedTasks, triggeredTasks, path } = underWay;
			expect([suspendedTasks.length, triggeredTasks.length]).toEqual([COUNT, COUNT]);
			await n8n.stop();
			await start(NEW_N8N);
			await client.login(TEST_OWNER);
			await client.waitForWebhook(path);
			await finish(underWay);
			await expectAll(underWay, label);
		},
		20 * MINUTE,
	);
});
