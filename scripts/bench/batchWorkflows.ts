import type { IDataObject, INode } from 'n8n-workflow';

import { IMAGE_MODEL } from '../../nodes/MediaGeneration/service/money';
import type { Collector } from '../../test/e2e/collector';
import { inARow, manualTrigger, node, type Stage, to } from '../../test/e2e/stage';

/** Between two reads of the loop that users build: the Wait node's own default. */
const LOOP_WAIT_SECONDS = 5;

/** The items come as pinned data: a node that makes them would be measured with the rest. */
function startWith(latencies: number[]) {
	const start = manualTrigger();
	const items = latencies.map((latencyMs, index) => ({
		json: { prompt: `Prompt ${index}`, simulate: { latencyMs } },
	}));
	return { start, pinData: { [start.name]: items } };
}

/** One request for all items that come: the end of the batch is seen from outside. */
const report = (collector: Collector): INode => ({
	...collector.node('Done'),
	executeOnce: true,
});

export function oursFor(
	stage: Stage,
	collector: Collector,
	latencies: number[],
	options: IDataObject,
) {
	const { start, pinData } = startWith(latencies);
	const row = inARow(start, stage.image({ completion: 'wait', options }), report(collector));
	return { name: `Ours: ${latencies.length}`, ...row, pinData };
}

/** All items at once: create, wait, read, and wait again for those that are not finished. */
export async function loopFor(
	{ service, client }: Stage,
	collector: Collector,
	latencies: number[],
) {
	const genericAuthType = 'httpHeaderAuth';
	const header = { name: 'Authorization', value: `Bearer ${service.apiKey}` };
	const { id, name } = await client.createCredential('Key', genericAuthType, header);
	/** n8n's HTTP Request node with the service's key, as users set it up by hand. */
	const request = (title: string, more: IDataObject): INode => {
		const authentication = 'genericCredentialType';
		const parameters = { authentication, genericAuthType, options: {}, ...more };
		const made = node('n8n-nodes-base.httpRequest', title, parameters, 4.2);
		return { ...made, credentials: { [genericAuthType]: { id, name } } };
	};
	const body = `{ model: '${IMAGE_MODEL}', input: { prompt: $json.prompt, simulate: $json.simulate } }`;
	const create = request('Create', {
		...{ method: 'POST', url: `${service.url}/api/generate` },
		...{ sendBody: true, specifyBody: 'json', jsonBody: `={{ JSON.stringify(${body}) }}` },
	});
	const wait: INode = {
		...node('n8n-nodes-base.wait', 'Wait', { amount: LOOP_WAIT_SECONDS, unit: 'seconds' }, 1.1),
		webhookId: crypto.randomUUID(),
	};
	const read = request('Read', { url: `=${service.url}/api/generate/{{ $json.taskId }}` });
	const condition = {
		id: crypto.randomUUID(),
		leftValue: '={{ $json.state }}',
		rightValue: 'PENDING',
		operator: { type: 'string', operation: 'notEquals' },
	};
	const options = { caseSensitive: true, leftValue: '', typeValidation: 'strict', version: 2 };
	const conditions = { options, combinator: 'and', conditions: [condition] };
	const isFinished = node('n8n-nodes-base.if', 'Finished?', { conditions, options: {} }, 2.2);
	const done = report(collector);
	const { start, pinData } = startWith(latencies);
	const { nodes, connections } = inARow(start, create, wait, read, isFinished, done);
	connections[isFinished.name] = { main: [...to(done.name), ...to(wait.name)] };
	return { name: `Loop: ${latencies.length}`, nodes, connections, pinData };
}
