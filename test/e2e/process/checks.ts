import type { IDataObject } from 'n8n-workflow';

import { settled } from '../../../nodes/MediaGeneration/shared/clock';
import { type Execution, until } from '../../n8n/client';
import { prompts } from '../nodes';
import { Run, statesOf, type Story, succeeded } from '../run';
import type { Published, Scene } from '../scene';

const MINUTE = 60_000;
const CHECK = 'Makes up for lost callbacks';

/** The execution that makes up for callbacks that do not come, each of which looks after a minute of n8n. */
export function testChecks(scene: Scene, story: Story): void {
	const lost = (count: number, more: IDataObject = {}): IDataObject[] =>
		Array<IDataObject>(count).fill({ callbackLost: true, latencyMs: 1_000, ...more });

	/** @param callbackUrl empty: the trigger of the same workflow */
	const orders = (name: string, switches: IDataObject[], callbackUrl: string) => [
		prompts(name, switches),
		scene.image({ completion: 'trigger', callbackUrl }),
	];

	/** Orders with the trigger of another workflow. */
	const start = async (name: string, switches: IDataObject[], { url }: Published) =>
		await scene.start(name, ...orders(name, switches, url));

	/** The executions that make up for the lost callbacks of a run, as n8n has stored them. */
	async function checksOf(run: Run): Promise<Execution[]> {
		const others = await run.others();
		// n8n removes such an execution when it succeeds.
		const found = others.map(async ({ id }) => await settled(scene.client.getExecution(id)));
		const all = (await Promise.all(found)).flatMap((each) => ('value' in each ? each.value : []));
		const isCheck = ({ data: { resultData, executionData } }: Execution) =>
			CHECK in resultData.runData ||
			executionData?.nodeExecutionStack.some(({ node: { name } }) => name === CHECK);
		return all.filter(isCheck);
	}

	/** Until all such executions of a run have succeeded, which n8n stores while they wait, and no longer. */
	async function expectGone(run: Run): Promise<void> {
		await until('the checks to end', 4 * MINUTE, async () => {
			const checks = await checksOf(run);
			for (const { status } of checks) expect(['running', 'waiting', 'success']).toContain(status);
			return checks.length === 0;
		});
	}

	/** Each of the tasks has started the workflow of its trigger once. */
	async function expectOnce(run: Run): Promise<void> {
		const { taskIds } = run;
		for (const taskId of taskIds) await scene.arrived(taskId);
		const arrived = scene.collector.seen.filter((taskId) => taskIds.includes(taskId));
		expect(arrived.sort()).toEqual([...taskIds].sort());
	}

	story('callbacks: all of six are lost, and the trigger is in the same workflow', async () => {
		const more = { orders: orders('Own', lost(6), '') };
		const lane = await scene.publish(scene.trigger(), more);
		const run = new Run(scene, await scene.client.run(lane.id), lane.id, 'Own');
		expect(statesOf(succeeded(await run.end()))).toEqual(Array(6).fill('PENDING'));
		await expectOnce(run);
		await expectGone(run);
		// One for each task, and no execution of the trigger that has started nothing.
		expect(await run.others()).toHaveLength(6);
	});

	story(
		'callbacks: the workflow of the trigger is not published, until the user does it',
		async () => {
			const unpublished = await scene.publish();
			await scene.client.unpublish(unpublished.id);
			const run = await start('Unpublished', lost(2), unpublished);
			await run.end();
			await until('the refusal', 2 * MINUTE, async () => {
				const [check] = await checksOf(run);
				const hints = check?.data.resultData.runData[CHECK]?.at(-1)?.hints ?? [];
				return JSON.stringify(hints).includes('HTTP 404');
			});
			await scene.client.publish(unpublished.id, [unpublished.path]);
			await expectOnce(run);
			await expectGone(run);
			expect(await run.others()).toEqual([]);
		},
	);
}
