import { readFileSync } from 'node:fs';
import type { IDataObject, INode } from 'n8n-workflow';

import { describe as tell, type Execution, until } from '../n8n/client';
import { chooseN8nVersion } from '../n8n/version';
import { AT_ONCE } from './atOnce';
import { unless } from './needs';
import { statesOf } from './run';
import { openScene } from './scene';

/**
 * n8n's protection against requests to private addresses, with nothing allowed but one name: what the user reads where
 * the service, the host of a result, or n8n's own address is refused.
 */

/** The first n8n that has it, of those that are prepared here. */
const SINCE = '2.41.1';

const { version } = chooseN8nVersion();
const missing = version === SINCE ? undefined : `n8n ${version} is not ${SINCE}`;
const { describe } = unless(missing, 'The protection');

describe("n8n's protection against requests to private addresses", () => {
	const scene = openScene({
		env: {
			N8N_SSRF_PROTECTION_ENABLED: 'true',
			N8N_SSRF_ALLOWED_HOSTNAMES: 'localhost',
			N8N_SSRF_ALLOWED_IP_RANGES: '',
		},
	});

	/** The service by a name that is allowed; its results are at an address that is not. */
	let allowed: Partial<INode>;
	beforeAll(async () => {
		const { url, apiKey } = scene.service;
		const baseUrl = url.replace('127.0.0.1', 'localhost');
		const data = { baseUrl, apiKey };
		const { id, name } = await scene.client.createCredential('Allowed', 'mediaGenerationApi', data);
		allowed = { credentials: { mediaGenerationApi: { id, name } } };
	});

	/** Makes one image, as the parameters say. */
	async function run(parameters: IDataObject, node: Partial<INode> = {}): Promise<Execution> {
		const { options, ...others } = parameters as { options?: IDataObject };
		return await scene.runImages([{}], { parameters: others, options, node });
	}

	const RANGE =
		"refused '127.0.0.1'. On every process of n8n, add the name to N8N_SSRF_ALLOWED_HOSTNAMES";

	test('the service is refused: nothing is sent, and the message says what to allow', async () => {
		const execution = await run({});
		expect(tell(execution)).toContain('error: n8n does not let this node call the service');
		expect(tell(execution)).toContain(RANGE);
		expect(scene.service.requests).toEqual([]);
	});

	test("the credential's test says that n8n refused it", async () => {
		const { url: baseUrl, apiKey } = scene.service;
		const verdict = await scene.client.testCredential(
			{ ...scene.stage.credential, type: 'mediaGenerationApi' },
			{ baseUrl, apiKey },
		);
		expect(verdict.status).toBe('Error');
		expect(verdict.message).toContain('blocked because it resolves to a restricted IP address');
	});

	test('the host of a result is refused: the task is named, and what to allow', async () => {
		const execution = await run({ options: { downloadResults: true } }, allowed);
		expect(tell(execution)).toContain('n8n does not let this node fetch the result: http://127');
		expect(tell(execution)).toContain(RANGE);
		expect(tell(execution)).toContain(scene.taskIds[0]);
		// Without the download the same goes.
		expect(tell(await run({}, allowed))).toBe('success');
	});

	test("n8n's own address is refused to Task: Redeliver", async () => {
		const [taskId = ''] = scene.stage.finishedTasks(1);
		const callbackUrl = `${scene.stage.webhookUrl}/webhook/any/callback`;
		const task = { resource: 'task', operation: 'redeliver', taskId, callbackUrl };
		const execution = await run(task, allowed);
		expect(tell(execution)).toContain('n8n does not let this node call the trigger: http://127');
		expect(tell(execution)).toContain(RANGE);
	});

	test("n8n's own address is refused to a suspended run, which goes on at its next look, and says why in the log", async () => {
		const log = () => readFileSync(scene.stage.receiver.logFile, 'utf8');
		const started = await scene.startImages([{ latencyMs: 5_000 }], {
			options: AT_ONCE,
			node: allowed,
			after: [scene.collector.node()],
		});
		await started.suspended();
		await until('the log to say why', 60_000, () =>
			log().includes(
				'n8n could not be told at its own address that the tasks are finished; the execution goes on at the next check',
			),
		);
		expect(statesOf(await started.end())).toEqual(['SUCCESS']);
		expect(log()).toContain(RANGE);
	}, 240_000);
});
