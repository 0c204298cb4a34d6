import type { INodeExecutionData } from 'n8n-workflow';

import { isTerminal } from './n8n/database';
import { StoredRun, WorkflowN8n } from './n8n/workflowN8n';
import { useProcessedData } from './processedData';
import { field, imageNode, keepsGoing, many, MINUTE, prompts, SECOND, stage } from './support';
import { pass, passUntil } from './time';

/** A kill, a sleep and a retry of a run while its circuit breaker is open, and the rounds of a loop. */

useProcessedData();
const on = stage();

const FORBIDDEN = { createStatus: { status: 403, body: '<html>Forbidden</html>' } };
const COUNT = 30;

/** So many orders are in doubt after a kill: twice what the first turn has ordered. */
const WINDOW = 12;

const ordersWith = (status: number) => on.creates.filter((create) => create.status === status);
const refused = () => ordersWith(403).length;
const promptsOrdered = () => on.inputs.map(({ prompt }) => prompt);
const retryOf = ({ n8n, row }: StoredRun) => new StoredRun(n8n, n8n.executions.retry(row)!);
const atEnd = async ({ row }: StoredRun) => await passUntil(() => isTerminal(row.status));

const pictures = (count = COUNT, seconds = 25) => prompts(...many(count, seconds * SECOND));

const inDoubt = (items: INodeExecutionData[]) =>
	field(items, 'error').filter((error) => String(error).startsWith('It is not known'));

function expectAllOrderedOnce(): void {
	expect(promptsOrdered().sort()).toEqual(
		pictures()
			.map(({ json }) => json.prompt)
			.sort(),
	);
}

/**
 * A run whose second turn has ordered two items when the service begins to refuse. Then so many orders are refused.
 *
 * @returns how many tasks n8n has not stored
 */
async function openedInSecondTurn(refusals: number, ifSomeFail = 'keep') {
	const options = { suspendAfter: 1, maxInFlight: 2, ifSomeFail };
	const more = ifSomeFail === 'keep' ? keepsGoing : {};
	const run = await on.start(imageNode(options, more), pictures());
	await passUntil(() => run.row.wakes === 1);
	const stored = on.created;
	await passUntil(() => on.created === stored + 2);
	on.service.configure(FORBIDDEN);
	await passUntil(() => refused() === refusals);
	return { run, lost: on.created - stored };
}

it('a kill and a retry while the service refuses: the retry waits for the service, and no item is refused', async () => {
	const { run, lost } = await openedInSecondTurn(2);
	await run.n8n.kill(run);
	const before = refused();
	const retry = retryOf(run);
	await passUntil(() => refused() > before + 2);
	on.service.resetSettings();
	await atEnd(retry);
	expect(inDoubt(retry.ran.output)).toHaveLength(WINDOW);
	expect(field(retry.ran.output, 'error').filter(Boolean)).toHaveLength(WINDOW);
	expect(on.created).toBe(COUNT - WINDOW + lost);
});

it('a sleep while the service refuses: the woken run goes on with one order at a time, and no item is refused', async () => {
	const { run } = await openedInSecondTurn(2);
	const { sleeps } = run.row;
	const before = { refused: refused(), at: on.elapsed };
	await passUntil(() => run.row.sleeps >= sleeps + 2 && on.elapsed >= before.at + 4 * MINUTE);
	const probes = refused() - before.refused;
	expect(probes).toBeGreaterThan(4);
	// A probe comes after a pause of 10 to 20 s.
	expect(probes).toBeLessThanOrEqual((on.elapsed - before.at) / (10 * SECOND));
	on.service.resetSettings();
	await atEnd(run);
	expect(field(run.ran.output, 'error').filter(Boolean)).toEqual([]);
	expectAllOrderedOnce();
});

it('a batch that ended after ten minutes of refusals: its retry orders what is left, each item once', async () => {
	const { run } = await openedInSecondTurn(2, 'stop');
	await atEnd(run);
	expect(run.row.status).toBe('error');
	const before = on.created;
	on.service.resetSettings();
	const retry = retryOf(run);
	await atEnd(retry);
	expect(field(retry.ran.output, 'state')).toEqual(Array(COUNT).fill('SUCCESS'));
	expect(on.created).toBe(COUNT);
	expect(before).toBeLessThan(COUNT);
	expectAllOrderedOnce();
});

describe('in a loop', () => {
	const rounds = (count: number, size: number): INodeExecutionData[][] => {
		const all = pictures(count * size, 5);
		return Array.from({ length: count }, (_, round) => all.slice(round * size, (round + 1) * size));
	};
	const loop = (count: number, size: number) =>
		new WorkflowN8n({ ...on.workflow(imageNode({}, keepsGoing)), rounds: rounds(count, size) });
	const errors = ({ data }: StoredRun) =>
		(data.resultData.runData.Media ?? []).flatMap(({ data: out }) =>
			field(out?.main?.[0] ?? [], 'error').filter(Boolean),
		);

	it('refusals of two minutes that begin between two rounds cost no item: the rounds before had tasks', async () => {
		const run = loop(3, 7).begin();
		await passUntil(() => on.created === 7);
		on.service.configure(FORBIDDEN);
		await pass(2 * MINUTE);
		on.service.resetSettings();
		await atEnd(run);
		expect(errors(run)).toEqual([]);
		expect(on.created).toBe(21);
	});
});
