import { setTimeout as sleep } from 'node:timers/promises';
import type { IDataObject, INode } from 'n8n-workflow';

import { until } from '../../n8n/client';
import { IMAGE_MODEL } from '../../../nodes/MediaGeneration/service/money';
import { inARow, manualTrigger, node, to, webhook } from '../nodes';
import type { Scene } from '../scene';

const MINUTE = 60_000;

/** What a caller sees who waits for the answer of a workflow: the run is held. */
export function testCallers(scene: Scene): void {
	/** Shorter than the tasks of a test take, minutes. */
	const SLOW = { suspendAfter: 0.02, additionalInput: { simulate: { latencyMs: 6_000 } } };
	const lighthouse = () => scene.image({ prompt: 'A lighthouse', options: SLOW });

	/** Publishes a workflow that this webhook starts, which can be started by hand, too, and calls it. */
	async function answerOf(asked: INode, ...after: INode[]) {
		const { client, stage } = scene;
		const { nodes, connections } = inARow(asked, lighthouse(), ...after);
		const byHand = manualTrigger();
		const { id, response } = await stage.callWebhook({
			name: 'Answers',
			nodes: [...nodes, byHand],
			connections: { ...connections, [byHand.name]: { main: to('Media') } },
		});
		const text = await response.text();
		expect(scene.tasks.map(({ record }) => record.state)).toEqual(['SUCCESS']);
		const executions = await client.waitForExecutions(id, 1);
		expect(executions.map(({ status }) => status)).toEqual(['success']);
		return { text, id };
	}

	test('a webhook that answers with its last node gives the results; started by hand, the run sleeps', async () => {
		const { client } = scene;
		const last = { responseMode: 'lastNode', responseData: 'allEntries' };
		const { text, id } = await answerOf(webhook('Asked', last));
		const [taskId] = scene.taskIds;
		expect(JSON.parse(text)).toMatchObject([{ taskId, state: 'SUCCESS' }]);
		await client.unpublish(id);
		// Nobody waits for an answer.
		const byHand = await client.run(id);
		await client.waitForSuspension(byHand);
		await client.stopExecution(byHand);
	});

	test('a webhook whose answer another node gives has the results', async () => {
		const answer = { respondWith: 'allIncomingItems', options: {} };
		const answers = node('n8n-nodes-base.respondToWebhook', 'Answer', answer, 1.1);
		const { text } = await answerOf(webhook('Asked', { responseMode: 'responseNode' }), answers);
		expect(JSON.parse(text)).toMatchObject([{ taskId: scene.taskIds[0], state: 'SUCCESS' }]);
	});

	test('the stream of a webhook that streams its answer ends when the results are there', async () => {
		await answerOf({ ...webhook('Asked', { responseMode: 'streaming' }), typeVersion: 2.1 });
	});

	test('an evaluation measures the results', async () => {
		const { client } = scene;
		const { path } = await client.dataTables();
		const columns = [{ name: 'prompt', type: 'string' }];
		const table = await client.send<{ id: string }>('POST', path, { name: 'Cases', columns });
		const cases = { data: [{ prompt: 'A lighthouse' }], returnType: 'id' };
		await client.send('POST', `${path}/${table.id}/insert`, cases);
		const dataTableId = { __rl: true, mode: 'id', value: table.id };
		const read = { source: 'dataTable', dataTableId };
		const value = "={{ +($json.state === 'SUCCESS') }}";
		const assignments = [{ id: '1', name: 'done', type: 'number', value }];
		const metric = { metric: 'customMetrics', metrics: { assignments } };
		const metrics = { operation: 'setMetrics', ...metric };
		const workflow = await client.createWorkflow({
			name: 'Is evaluated',
			...inARow(
				node('n8n-nodes-base.evaluationTrigger', 'Cases', read, 4.7),
				scene.image({ options: SLOW }),
				node('n8n-nodes-base.evaluation', 'Metrics', metrics, 4.7),
			),
		});
		const runs = `/rest/workflows/${workflow.id}/test-runs`;
		await client.send('POST', `${runs}/new`, {});
		let ended: IDataObject = {};
		await until('the evaluation to end', MINUTE, async () => {
			[ended = {}] = await client.get<IDataObject[]>(runs);
			return ended.status === 'completed';
		});
		expect(ended).toMatchObject({ finalResult: 'success', metrics: { done: 1 } });
	});

	test('a sender whose callback has a read behind it that trickles is answered in time, and starts the workflow once', async () => {
		// No time limit of n8n's own HTTP client ends such a read.
		scene.service.configure({
			readWay: { fate: 'trickles', times: 1 },
			callbackBackoffMs: 1_000,
		});
		const { address } = await scene.publish();
		const input = { prompt: 'Called back', simulate: { latencyMs: 0 } };
		const { taskId } = scene.service.createTask(IMAGE_MODEL, input, address);
		await scene.expectArrived([taskId]);
		expect(scene.service.callbacks.map(({ status }) => status)).toEqual([503, 200]);
	});

	test('whoever stops a held run finds its task in the log and in a short execution of the list, and it is read no more', async () => {
		const run = await scene.startImages([{ latencyMs: 3_600_000 }]);
		await until('the task', 30_000, () => scene.tasks.length > 0);
		await run.stop();
		const ended = await run.end(30_000);
		expect(ended.status).toBe('canceled');
		const [taskId] = scene.taskIds;
		await scene.logged(`without paying again: ${taskId}`);
		expect(await run.left()).toEqual([{ item: 1, taskId, state: 'PENDING' }]);
		const before = run.reads;
		await sleep(5_000);
		expect(run.reads).toBe(before);
		const [left] = await run.others();
		const { items } = await run.fetched(left?.id);
		expect(items).toMatchObject([{ item: 1, taskId, state: 'PENDING' }]);
	});
}
