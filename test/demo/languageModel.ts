import { fastify } from 'fastify';
import type { AddressInfo } from 'node:net';

const HOST = '127.0.0.1';
/** In the place of a language model's thinking. */
export const MODEL_NAME = 'stand-in';

interface Message {
	role: 'system' | 'user' | 'assistant' | 'tool';
	content?: string | Array<{ text?: string }> | null;
	tool_call_id?: string;
}

interface Tool {
	function: {
		name: string;
		description?: string;
		parameters?: { properties?: Record<string, { type?: string }> };
	};
}

/** A request for the next message of a chat. */
export interface ChatRequest {
	model: string;
	messages: Message[];
	tools?: Tool[];
}

/** The running stand-in. */
export interface LanguageModel {
	/** For the credential's *Base URL*. */
	readonly url: string;
	readonly requests: readonly ChatRequest[];
	close(): Promise<void>;
}

/**
 * A stand-in for a language model behind OpenAI's chat completions, so that agents run without an account: it
 * hands what the user says to the tool that the words fit best, and answers with what the tool returned. Without
 * tools it rewrites a prompt.
 *
 * @param port 0, the default, takes any
 */
export async function startLanguageModel(port = 0): Promise<LanguageModel> {
	const requests: ChatRequest[] = [];
	const server = fastify({ bodyLimit: 16 * 1024 * 1024, forceCloseConnections: true });
	server.get('/v1/models', () => ({ object: 'list', data: [{ id: MODEL_NAME, object: 'model' }] }));
	server.post<{ Body: ChatRequest }>('/v1/chat/completions', ({ body }) => {
		requests.push(body);
		const message = answer(body, requests.length);
		return {
			id: `chatcmpl-${requests.length}`,
			object: 'chat.completion',
			created: Math.floor(Date.now() / 1000),
			model: body.model,
			choices: [
				{ index: 0, message, finish_reason: 'tool_calls' in message ? 'tool_calls' : 'stop' },
			],
			usage: { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 },
		};
	});
	await server.listen({ host: HOST, port });
	const { port: taken } = server.server.address() as AddressInfo;
	return { url: `http://${HOST}:${taken}/v1`, requests, close: () => server.close() };
}

function answer({ messages, tools = [] }: ChatRequest, turn: number) {
	const last = messages.at(-1);
	const said = textOf(last);
	if (last?.role === 'tool') return { role: 'assistant', content: report(said) };
	const tool = bestFit(tools, said);
	if (tool === undefined) return { role: 'assistant', content: rewritten(said) };
	const parameters = Object.keys(tool.function.parameters?.properties ?? {});
	const values = Object.fromEntries(parameters.map((name) => [name, said]));
	const call = { name: tool.function.name, arguments: JSON.stringify(values) };
	return {
		role: 'assistant',
		content: null,
		tool_calls: [{ id: `call_${turn}`, type: 'function', function: call }],
	};
}

/** @returns the prompt that ends what was said, in other words */
const rewritten = (said: string) => `${said.trim().split('\n').at(-1)}, for children`;

function textOf(message: Message | undefined): string {
	const content = message?.content ?? '';
	return typeof content === 'string' ? content : content.map(({ text }) => text ?? '').join('');
}

/** @returns the tool with most of its name among the words; the first one where none fits better */
function bestFit(tools: Tool[], said: string): Tool | undefined {
	const words = said.toLowerCase();
	const fit = ({ function: { name } }: Tool) =>
		name
			.toLowerCase()
			.split(/[^a-z]+/)
			.filter((word) => word !== '' && words.includes(word)).length;
	return [...tools].sort((a, b) => fit(b) - fit(a))[0];
}

/** @returns the first address in what a tool returned, else all of it */
function report(result: string): string {
	const [address] = /https?:\/\/[^\s"'\\]+/.exec(result) ?? [];
	return address === undefined ? `The tool says: ${result}` : `Here it is: ${address}`;
}
