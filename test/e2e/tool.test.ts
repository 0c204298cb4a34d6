import { createRequire } from 'node:module';
import type { IConnections, IDataObject, INode } from 'n8n-workflow';

import { type LanguageModel, MODEL_NAME, startLanguageModel } from '../n8n/languageModel';
import { until } from '../n8n/client';
import { called, inARow, node, to } from './nodes';
import { openScene } from './scene';

const PROMPT = 'A picture of a red fox';

const scene = openScene();
let model: LanguageModel;
let modelCredential: { id: string; name: string };

beforeAll(async () => {
	model = await startLanguageModel();
	modelCredential = await scene.client.createCredential('Language model', 'openAiApi', {
		apiKey: 'none',
		url: model.url,
	});
}, 900_000);
afterAll(async () => await model?.close());

/** The action node as a tool, with a prompt that the agent writes, and the description that comes with the node. */
const pictureTool = (parameters: IDataObject = {}, simulate: IDataObject = {}): INode => ({
	...scene.media({
		prompt: "={{ $fromAI('prompt', 'What the picture shows', 'string') }}",
		options: { additionalInput: JSON.stringify({ simulate }) },
		...parameters,
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

/** A workflow whose agent, of this version, has the tool. */
async function agentWorkflow(version: number, tool: INode): Promise<string> {
	const langchain = '@n8n/n8n-nodes-langchain';
	const trigger = node(`${langchain}.chatTrigger`, 'Chat', { options: {} }, 1.4);
	const chat = { ...trigger, webhookId: crypto.randomUUID() };
	const chosen = {
		model: { __rl: true, mode: 'id', value: MODEL_NAME },
		responsesApiEnabled: false,
	};
	const languageModel: INode = {
		...node(`${langchain}.lmChatOpenAi`, 'Model', chosen, 1.3),
		credentials: { openAiApi: modelCredential },
	};
	const agent = node(`${langchain}.agent`, 'Agent', { options: {} }, version);
	const connections: IConnections = {
		Chat: { main: to('Agent') },
		Model: { ai_languageModel: [[{ node: 'Agent', type: 'ai_languageModel', index: 0 }]] },
		Picture: { ai_tool: [[{ node: 'Agent', type: 'ai_tool', index: 0 }]] },
	};
	const nodes = [chat, languageModel, agent, tool];
	const settings = { executionOrder: 'v1' as const };
	const definition = { name: `Agent ${version}`, nodes, connections, settings };
	return (await scene.client.createWorkflow(definition)).id;
}

/** What the agent's model was handed by the tool, after the user has said something. */
async function toolSays(version: number, tool: INode): Promise<{ said: string; output: unknown }> {
	const id = await agentWorkflow(version, tool);
	const before = model.requests.length;
	const { output } = await scene.client.chat(id, 'Chat', PROMPT);
	const messages = model.requests.slice(before).flatMap((request) => request.messages);
	const last = messages.filter(({ role }) => role === 'tool').at(-1)?.content ?? '';
	return { said: typeof last === 'string' ? last : JSON.stringify(last), output };
}

describe.each([2, 2.2, 3, 3.1])('an agent of version %d', (version) => {
	it('reads the description, makes one picture, and gets what it can use', async () => {
		const { said, output } = await toolSays(version, pictureTool());
		const [task] = scene.tasks;
		expect(scene.tasks).toHaveLength(1);
		expect(task?.record.input.prompt).toBe(PROMPT);
		const offered = model.requests.at(-1)?.tools?.[0]?.function;
		expect(offered?.description).toContain('Generates one image from a text prompt');
		expect(said).toContain(String(task?.record.resultUrls?.[0]));
		expect(said).not.toContain('"record"');
		expect(output).toBe(`Here it is: ${task?.record.resultUrls?.[0]}`);
	});

	it('gets the reason of a failed task, and the workflow goes on', async () => {
		const tool = pictureTool({}, { outcome: 'FAILURE', failureMessage: 'Unsafe prompt.' });
		const { said, output } = await toolSays(version, tool);
		expect(said).toContain('Unsafe prompt');
		expect(said).toContain('Change the prompt');
		expect(output).toContain('Unsafe prompt');
	});
});

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

describe('an MCP server', () => {
	let client: McpClient;
	beforeEach(() => {
		const { Client } = mcp<{ Client: new (who: object) => McpClient }>('index.js');
		client = new Client({ name: 'test', version: '1.0.0' });
	});
	afterEach(async () => await client.close());

	/** Publishes a server that offers one tool, and connects to it. */
	async function connect(tool: INode): Promise<void> {
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
	}

	/** Calls the tool as any client does, which waits for a minute. @returns its answer, which is no error as a rule */
	async function call(mayFail = false): Promise<string> {
		const call = { name: 'Picture', arguments: { prompt: PROMPT } };
		const { content, isError = false } = await client.callTool(call);
		expect(isError).toBe(mayFail && isError);
		return content.map(({ text = '' }) => text).join('\n');
	}

	it('offers the tool with its description and answers with what the client can use', async () => {
		await connect(pictureTool());
		const { tools } = await client.listTools();
		const [tool] = tools;
		expect(tool?.description).toContain('Generates one image from a text prompt');
		expect(Object.keys(tool?.inputSchema.properties ?? {})).toEqual(['prompt']);
		const text = await call();
		const [item = {}] = JSON.parse(text) as object[];
		const fields = ['taskId', 'state', 'resultUrls', 'creditsConsumed', 'estimatedCostUsd'];
		expect(Object.keys(item)).toEqual(fields);
		expect(scene.tasks).toHaveLength(1);
	});

	it.each(['trickles', 'trickles from its head'])(
		'answers within that minute, too, if the answer to the create %s: nobody orders it again',
		async (fate) => {
			scene.service.configure({ createWay: { fate, everyMs: 10_000 } as never });
			await connect(pictureTool());
			const begunAt = Date.now();
			const text = await call();
			expect(Date.now() - begunAt).toBeLessThan(58_000);
			const [item = {}] = JSON.parse(text) as IDataObject[];
			expect(item.error).toContain('It is not known whether the task was created');
			expect(scene.tasks).toHaveLength(1);
			expect(item.next).toContain('Do not order it again');
		},
		180_000,
	);

	it('answers within the minute that clients wait, with the task that goes on', async () => {
		await connect(pictureTool({}, { latencyMs: 3_600_000 }));
		const text = await call();
		const [taskId] = scene.taskIds;
		const next = expect.stringContaining('Do not order it again') as string;
		expect(JSON.parse(text)).toMatchObject([{ taskId, state: 'PENDING', next }]);
	}, 180_000);

	it('answers so, too, if the tool is a workflow with the node in it, which finds the server by the context that n8n hands on', async () => {
		const { client } = scene;
		const simulate = { latencyMs: 90_000 };
		const order = scene.image({ prompt: PROMPT, options: { additionalInput: { simulate } } });
		const row = inARow(called(), order);
		const { id } = await client.createWorkflow({ name: 'Tool of the server', ...row });
		await client.publish(id, []);
		await connect(workflowTool(id));
		const begunAt = Date.now();
		const text = await call(true);
		expect(Date.now() - begunAt).toBeLessThan(60_000);
		expect(text).toContain(`task ${scene.taskIds[0]}`);
		expect(text).toContain('do not order it again');
		expect(scene.tasks).toHaveLength(1);
	}, 180_000);
});
