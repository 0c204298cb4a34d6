import type { INode } from 'n8n-workflow';

import { describe as tell } from '../n8n/client';
import { openScene, type Order } from './scene';

/**
 * n8n's protection against requests to private addresses, with nothing allowed but one name: what the user reads where
 * the service, the host of a result, or n8n's own address is refused.
 */

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

	/** What becomes of a run for one item. */
	const told = async (order?: Order) => tell(await scene.runImages([{}], order));

	const RANGE =
		"refused '127.0.0.1'. On every process of n8n, add the name to N8N_SSRF_ALLOWED_HOSTNAMES";

	test('the service is refused: nothing is sent, and the message says what to allow', async () => {
		const text = await told();
		expect(text).toContain('error: n8n does not let this node call the service');
		expect(text).toContain(RANGE);
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
		const text = await told({ options: { downloadResults: true }, node: allowed });
		expect(text).toContain('n8n does not let this node fetch the result: http://127');
		expect(text).toContain(RANGE);
		expect(text).toContain(scene.taskIds[0]);
		// Without the download the same goes.
		expect(await told({ node: allowed })).toBe('success');
	});

	test("n8n's own address is refused to Task: Redeliver", async () => {
		const [taskId = ''] = scene.stage.finishedTasks(1);
		const callbackUrl = `${scene.stage.webhookUrl}/webhook/any/callback`;
		const parameters = { resource: 'task', operation: 'redeliver', taskId, callbackUrl };
		const text = await told({ parameters, node: allowed });
		expect(text).toContain('n8n does not let this node call the trigger: http://127');
		expect(text).toContain(RANGE);
	});
});
