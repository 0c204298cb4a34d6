import { readFileSync } from 'node:fs';
import type { IDataObject, INode } from 'n8n-workflow';

import { describe as tell, type Execution, outputItems, until } from '../n8n/client';
import { chooseN8nVersion } from '../n8n/version';
import { AT_ONCE } from './atOnce';
import { Collector } from './collector';
import { inARow, itemsNode, manualTrigger, Stage } from './stage';

/**
 * n8n's protection against requests to private addresses, with nothing allowed but one name: what the user reads where
 * the service, the host of a result, or n8n's own address is refused.
 */

/** The first n8n that has it, of those that are prepared here. */
const SINCE = '2.41.1';

const { version } = chooseN8nVersion();
if (version !== SINCE) console.log(`the protection is skipped: n8n ${version} is not ${SINCE}`);
const describeProtection = version === SINCE ? describe : describe.skip;

describeProtection("n8n's protection against requests to private addresses", () => {
	let stage: Stage;
	let collector: Collector;
	/** The service by a name that is allowed; its results are at an address that is not. */
	let allowed: { id: string; name: string };

	beforeAll(async () => {
		stage = await Stage.open({
			N8N_SSRF_PROTECTION_ENABLED: 'true',
			N8N_SSRF_ALLOWED_HOSTNAMES: 'localhost',
			N8N_SSRF_ALLOWED_IP_RANGES: '',
		});
		const baseUrl = stage.service.url.replace('127.0.0.1', 'localhost');
		const { apiKey } = stage.service;
		allowed = await stage.client.createCredential('Allowed', 'mediaGenerationApi', {
			baseUrl,
			apiKey,
		});
		collector = await Collector.open();
	}, 900_000);
	afterAll(async () => {
		collector?.close();
		await stage?.close();
	}, 60_000);
	beforeEach(() => {
		stage.reset();
		collector.reset();
	});

	/** Starts a workflow that makes one image, as the parameters say. */
	async function start(
		parameters: IDataObject,
		credential?: { id: string; name: string },
		...after: INode[]
	): Promise<string> {
		const image = { resource: 'image', operation: 'generate', prompt: '={{ $json.prompt }}' };
		const media = stage.mediaNode(
			'mediaGeneration',
			'Media',
			{ ...image, ...parameters },
			credential && { credentials: { mediaGenerationApi: credential } },
		);
		const prompts = itemsNode('Prompts', [{ prompt: 'A lighthouse' }]);
		const { id } = await stage.client.createWorkflow({
			name: 'Protected',
			...inARow(manualTrigger(), prompts, media, ...after),
		});
		return await stage.client.run(id);
	}

	const run = async (...args: Parameters<typeof start>): Promise<Execution> =>
		await stage.client.waitForExecution(await start(...args));

	const RANGE =
		"refused '127.0.0.1'. On every process of n8n, add the name to N8N_SSRF_ALLOWED_HOSTNAMES";

	test('the service is refused: nothing is sent, and the message says what to allow', async () => {
		const execution = await run({});
		expect(tell(execution)).toContain('error: n8n does not let this node call the service');
		expect(tell(execution)).toContain(RANGE);
		expect(stage.service.requests).toEqual([]);
	});

	test("the credential's test says that n8n refused it", async () => {
		const { baseUrl, apiKey } = { baseUrl: stage.service.url, apiKey: stage.service.apiKey };
		const verdict = await stage.client.testCredential(
			{ ...stage.credential, type: 'mediaGenerationApi' },
			{ baseUrl, apiKey },
		);
		expect(verdict.status).toBe('Error');
		expect(verdict.message).toContain('blocked because it resolves to a restricted IP address');
	});

	test('the host of a result is refused: the task is named, and what to allow', async () => {
		const execution = await run({ options: { downloadResults: true } }, allowed);
		const [taskId] = stage.service.tasks.keys();
		expect(tell(execution)).toContain('n8n does not let this node fetch the result: http://127');
		expect(tell(execution)).toContain(RANGE);
		expect(tell(execution)).toContain(taskId);
		// Without the download the same goes.
		expect(tell(await run({}, allowed))).toBe('success');
	});

	test("n8n's own address is refused to Task: Redeliver", async () => {
		const [taskId = ''] = stage.finishedTasks(1);
		const callbackUrl = `${stage.webhookUrl}/webhook/any/callback`;
		const execution = await run(
			{ resource: 'task', operation: 'redeliver', taskId, callbackUrl },
			allowed,
		);
		expect(tell(execution)).toContain('n8n does not let this node call the trigger: http://127');
		expect(tell(execution)).toContain(RANGE);
	});

	test("n8n's own address is refused to a suspended run, which goes on at its next look, and says why in the log", async () => {
		const { client, receiver } = stage;
		const execution = await start(
			{
				options: { ...AT_ONCE, additionalInput: { simulate: { latencyMs: 5_000 } } },
			},
			allowed,
			collector.node(),
		);
		await client.waitForSuspension(execution);
		await until('the log to say why', 60_000, async () =>
			readFileSync(receiver.logFile, 'utf8').includes(
				'n8n could not be told at its own address that the tasks are finished; the execution goes on at the next check',
			),
		);
		const ended = await client.waitForExecution(execution, 150_000);
		expect(outputItems(ended, 'Media').map(({ json }) => json.state)).toEqual(['SUCCESS']);
		expect(readFileSync(receiver.logFile, 'utf8')).toContain(RANGE);
	}, 240_000);
});
