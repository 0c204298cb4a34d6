import { json } from 'node:stream/consumers';

import { listen } from '../listen';

/** In the place of a language model's thinking. */
export const MODEL_NAME = 'stand-in';

interface Tool {
	function: {
		name: string;
		description?: string;
		parameters?: { properties?: Record<string, { type?: string }> };
	};
}

/** A request for the next message of a chat. */
interface ChatRequest {
	model: string;
	messages: Array<{ role: string; content?: string | Array<{ text?: string }> | null }>;
	tools?: Tool[];
}

/** The running stand-in. */
export type LanguageModel = Awaited<ReturnType<typeof startLanguageModel>>;

/**
 * A stand-in for a language model behind OpenAI's chat completions, so that agents run without an account: it
 * hands what the user says to the tool that the words fit best, and answers with what the tool returned. Without
 * tools it rewrites a prompt.
 *
 * @returns its address, for the credential's *Base URL*, and what was asked
 */
export async function startLanguageModel() {
	const requests: ChatRequest[] = [];
	const { url, close } = await listen(async (request, response) => {
		response.setHeader('content-type', 'application/json');
		const say = (said: object) => response.end(JSON.stringify(said));
		if (request.method === 'GET') {
			return say({ object: 'list', data: [{ id: MODEL_NAME, object: 'model' }] });
		}
		const body = (await json(request)) as ChatRequest;
		requests.push(body);
		const message = answer(body, requests.length);
		const finish_reason = 'tool_calls' in message ? 'tool_calls' : 'stop';
		return say({
			id: `chatcmpl-${requests.length}`,
			object: 'chat.completion',
			created: Math.floor(Date.now() / 1000),
			model: body.model,
			choices: [{ index: 0, message, finish_reason }],
			usage: { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 },
		});
	});
	return { url: `${url}/v1`, requests, close };
}

function answer({ messages, tools = [] }: ChatRequest, turn: number) {
	const { role, content = '' } = messages.at(-1) ?? {};
	const texts = typeof content === 'string' ? [{ text: content }] : (content ?? []);
	const said = texts.map(({ text }) => text ?? '').join('');
	if (role === 'tool') return { role: 'assistant', content: report(said) };
	const tool = bestFit(tools, said);
	if (tool === undefined) {
		// The prompt that ends what was said, in other words.
		return { role: 'assistant', content: `${said.trim().split('\n').at(-1)}, for children` };
	}
	const parameters = Object.keys(tool.function.parameters?.properties ?? {});
	const values = Object.fromEntries(parameters.map((name) => [name, said]));
	const call = { name: tool.function.name, arguments: JSON.stringify(values) };
	return {
		role: 'assistant',
		content: null,
		tool_calls: [{ id: `call_${turn}`, type: 'function', function: call }],
	};
}

/** @returns the tool with most of its name among the words; the first one where none fits better */
function bestFit(tools: Tool[], said: string): Tool | undefined {
	const fit = ({ function: { name } }: Tool) =>
		(name.toLowerCase().match(/[a-z]+/g) ?? []).filter((word) => said.toLowerCase().includes(word))
			.length;
	return tools.toSorted((a, b) => fit(b) - fit(a))[0];
}

/** @returns the first address in what a tool returned, else all of it */
function report(result: string): string {
	const [address] = /https?:\/\/[^\s"'\\]+/.exec(result) ?? [];
	return address === undefined ? `The tool says: ${result}` : `Here it is: ${address}`;
}
