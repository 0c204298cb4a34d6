import { type StoredRun, WorkflowN8n } from './n8n/workflowN8n';
import { field, imageNode, keepsGoing, many, prompts, SECOND, stage } from './support';
import { pass, passUntil } from './time';

/** What the service was seen to do is the node's: the next round of a loop knows it. */

const on = stage();
const images = (count: number, seconds: number) => prompts(...many(count, seconds * SECOND));
const outOf = (run: StoredRun) =>
	(run.data.resultData.runData.Media ?? []).flatMap(({ data }) => data?.main?.[0] ?? []);
const errorsOf = (run: StoredRun) => field(outOf(run), 'error').filter(Boolean);

for (const size of [1, 5, 40])
	it(`rounds of ${size}: 30 s of 502 leave at most six of 40 in doubt`, async () => {
		const all = images(40, 3);
		const rounds = Array.from({ length: 40 / size }, (_, i) => all.slice(i * size, (i + 1) * size));
		const n8n = new WorkflowN8n({ ...on.workflow(imageNode({}, keepsGoing)), rounds });
		await pass(5 * SECOND);
		const run = n8n.begin();
		await passUntil(() => on.created >= 10);
		on.service.configure({ createStatus: { status: 502, body: '<html>502</html>' } });
		await pass(30 * SECOND);
		on.service.resetSettings();
		await run.end();
		expect(errorsOf(run).length).toBeLessThanOrEqual(6);
	});

it('rounds of one: five minutes of 404 cost no item', async () => {
	const rounds = images(40, 3).map((each) => [each]);
	const n8n = new WorkflowN8n({ ...on.workflow(imageNode({}, keepsGoing)), rounds });
	await pass(5 * SECOND);
	const run = n8n.begin();
	await passUntil(() => on.created >= 6);
	on.service.configure({
		createStatus: { status: 404, body: { message: 'no Route matched' } },
	});
	await pass(300 * SECOND);
	on.service.resetSettings();
	await run.end();
	expect(errorsOf(run)).toEqual([]);
});
