import { createRequire } from 'node:module';
import type { IConnections, IDataObject, INode } from 'n8n-workflow';

import { type LanguageModel, startLanguageModel } from '../n8n/languageModel';
import { until } from '../n8n/client';
import { called, inARow, node } from './nodes';
import { atTheSameTime } from './run';
import { openAccount, openScene, type Scene } from './scene';
import { Stage } from './stage';
import { testExamples } from './tools/examples';

const PROMPT = 'A picture of a red fox';

/** An n8n with the editor, a language model, and all of its tools: agents, MCP servers, and the examples. */
const scene = openScene({ open: async () => await Stage.open(), clears: false });
const account = openAccount(scene);

/** Accounts of the stories that take a minute. */
const slow = openAccount(scene, false);
const long = openAccount(scene, false);
const story = atTheSameTime(test, 500);

let model: LanguageModel;
beforeAll(async () => {
	model = await startLanguageModel();
}, 900_000);
afterAll(async () => await model?.close());

/** The action node as a tool, with a prompt that the agent writes, and the description that comes with the node. */
const pictureTool = (at: Scene, simulate: IDataObject = {}): INode => ({
	...at.media({
		prompt: "={{ $fromAI('prompt', 'What the picture shows', 'string') }}",
		options: { additionalInput: JSON.stringify({ simulate }) },
	}),
	name: 'Picture',
	type: 'n8n-nodes-media-generation.mediaGenerationTool',
});

/** A workflow as a tool. */
const workflowTool = (workflowId: string): INode => {
	const parameters = {
		description: 'Makes a picture',
		workflowId: { __rl: true, mode: 'id', value: workflowId },
		workflowInputs: { mappingMode: 'defineBelow', value: {}, schema: [] },
	};
	return node('@n8n/n8n-nodes-langchain.toolWorkflow', 'Picture', parameters, 2.2);
};

describe('the examples', () => testExamples(account, () => model));

/** The client of the MCP library, as far as it is used here. */
interface McpClient {
	connect(transport: object): Promise<void>;
	listTools(): Promise<{
		tools: Array<{ description?: string; inputSchema: { properties?: object } }>;
	}>;
	callTool(call: object): Promise<{ content: Array<{ text?: string }>; isError?: boolean }>;
	close(): Promise<void>;
}

/** The MCP library that n8n brings along. */
const mcp = <T>(file: string) =>
	createRequire(scene.stage.n8n.install.n8nScript)(`@modelcontextprotocol/sdk/client/${file}`) as T;

/** Publishes a server that offers one tool. @returns a client that is connected to it */
async function connect(tool: INode): Promise<McpClient> {
	const { Client } = mcp<{ Client: new (who: object) => McpClient }>('index.js');
	const client = new Client({ name: 'test', version: '1.0.0' });
	const path = crypto.randomUUID();
	const type = '@n8n/n8n-nodes-langchain.mcpTrigger';
	const trigger = { ...node(type, 'Server', { path }, 2), webhookId: path };
	const connections: IConnections = {
		Picture: { ai_tool: [[{ node: 'Server', type: 'ai_tool', index: 0 }]] },
	};
	const nodes = [trigger, tool];
	const { id } = await scene.client.createWorkflow({ name: 'MCP', nodes, connections });
	await scene.client.publish(id);
	const url = new URL(`${scene.stage.webhookUrl}/mcp/${path}`);
	await until('the MCP server to answer', 30_000, async () => {
		const { StreamableHTTPClientTransport: Transport } = mcp<{
			StreamableHTTPClientTransport: new (to: URL) => object;
		}>('streamableHttp.js');
		// A transport connects once.
		const isRefused = client.connect(new Transport(url)).catch(() => true);
		return (await isRefused) !== true;
	});
	return client;
}

/** Calls a tool as any client does, which waits for a minute. @returns its answer, which is no error as a rule */
async function callTool(client: McpClient, mayFail = false): Promise<string> {
	const begunAt = Date.now();
	const call = { name: 'Picture', arguments: { prompt: PROMPT } };
	const { content, isError = false } = await client.callTool(call);
	expect(isError).toBe(mayFail && isError);
	expect(Date.now() - begunAt).toBeLessThan(60_000);
	await client.close();
	return content.map(({ text = '' }) => text).join('\n');
}

describe('an MCP server', () => {
	it('offers the tool with its description and answers with what the client can use', async () => {
		const client = await connect(pictureTool(account));
		const { tools } = await client.listTools();
		const [tool] = tools;
		expect(tool?.description).toContain('Generates one image from a text prompt');
		expect(Object.keys(tool?.inputSchema.properties ?? {})).toEqual(['prompt']);
		const text = await callTool(client);
		const [item = {}] = JSON.parse(text) as object[];
		const fields = ['taskId', 'state', 'resultUrls', 'creditsConsumed', 'estimatedCostUsd'];
		expect(Object.keys(item)).toEqual(fields);
		expect(account.tasks).toHaveLength(1);
	});

	story(
		'answers within the minute that clients wait, also if the answer to the create trickles: nobody orders it again',
		async () => {
			slow.service.configure({ createWay: { fate: 'trickles from its head', everyMs: 10_000 } });
			const text = await callTool(await connect(pictureTool(slow)));
			const [item = {}] = JSON.parse(text) as IDataObject[];
			expect(item.error).toContain('It is not known whether the task was created');
			expect(slow.tasks).toHaveLength(1);
			expect(item.next).toContain('Do not order it again');
		},
	);

	story('answers within the minute that clients wait, with the task that goes on', async () => {
		const text = await callTool(await connect(pictureTool(long, { latencyMs: 3_600_000 })));
		const [taskId] = long.taskIds;
		const next = expect.stringContaining('Do not order it again') as string;
		expect(JSON.parse(text)).toMatchObject([{ taskId, state: 'PENDING', next }]);
	});

	story(
		'answers so, too, if the tool is a workflow with the node in it, which finds the server by the context that n8n hands on',
		async () => {
			const simulate = { latencyMs: 90_000 };
			const order = scene.image({ prompt: PROMPT, options: { additionalInput: { simulate } } });
			const row = inARow(called(), order);
			const { id } = await scene.client.createWorkflow({ name: 'Tool of the server', ...row });
			await scene.client.publish(id, []);
			const text = await callTool(await connect(workflowTool(id)), true);
			expect(text).toContain(`task ${scene.taskIds[0]}`);
			expect(text).toContain('do not order it again');
			expect(scene.tasks).toHaveLength(1);
		},
	);
});
