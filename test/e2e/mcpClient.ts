/** What a tool is to an MCP client. */
export interface McpTool {
	name: string;
	description: string;
	inputSchema: { properties?: Record<string, unknown> };
}

interface McpResult {
	tools?: McpTool[];
	content?: Array<{ text: string }>;
	isError?: boolean;
}

/** A client of the Model Context Protocol, over streamable HTTP, as far as the tests go. */
export class McpClient {
	private constructor(
		private readonly url: string,
		private readonly session: string,
	) {}

	private id = 1;

	/** @param url of the MCP server trigger */
	static async connect(url: string): Promise<McpClient> {
		const params = {
			protocolVersion: '2025-03-26',
			capabilities: {},
			clientInfo: { name: 'test', version: '1.0.0' },
		};
		const message = { jsonrpc: '2.0', id: 0, method: 'initialize', params };
		const response = await post(url, message);
		const session = response.headers.get('mcp-session-id');
		await response.text();
		if (!response.ok || session === null) {
			throw new Error(`The MCP server answered ${response.status}.`);
		}
		const client = new McpClient(url, session);
		await post(url, { jsonrpc: '2.0', method: 'notifications/initialized' }, session);
		return client;
	}

	async tools(): Promise<McpTool[]> {
		return (await this.ask('tools/list', {})).tools ?? [];
	}

	/** @returns what the tool said, and whether it said so as an error */
	async call(name: string, args: object): Promise<{ text: string; isError: boolean }> {
		const { content = [], isError = false } = await this.ask('tools/call', {
			name,
			arguments: args,
		});
		return { text: content.map(({ text }) => text).join('\n'), isError };
	}

	private async ask(method: string, params: object): Promise<McpResult> {
		const message = { jsonrpc: '2.0', id: this.id++, method, params };
		const body = await (await post(this.url, message, this.session)).text();
		// The answer is an event of a stream, as a rule.
		const data = /^data: (.*)$/m.exec(body)?.[1] ?? body;
		const { result, error } = JSON.parse(data) as { result?: McpResult; error?: object };
		if (!result) throw new Error(`${method}: ${JSON.stringify(error)}`);
		return result;
	}
}

async function post(url: string, message: object, session?: string): Promise<Response> {
	return await fetch(url, {
		method: 'POST',
		headers: {
			'content-type': 'application/json',
			accept: 'application/json, text/event-stream',
			...(session !== undefined && { 'mcp-session-id': session }),
		},
		body: JSON.stringify(message),
	});
}
