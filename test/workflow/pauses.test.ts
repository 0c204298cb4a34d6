// Copy into test/workflow. All fail on 8b026ac: pauses of the service that outlast a turn, and a killed turn.
import { useProcessedData } from './processedData';
import { imageNode, many, prompts, SECOND, stage } from './support';
import { passUntil } from './time';

useProcessedData();
const on = stage();

it.each([
	[5, 60, 45],
	[5, 60, 120],
	[2, 120, 60],
])(
	'an account with %d places, Retry-After %d s, tasks of %d s: all defaults, 100 items',
	async (limit, retryAfter, seconds) => {
		on.service.configure({ concurrencyLimit: { limit, retryAfter } });
		const run = await on.start(imageNode({}), prompts(...many(100, seconds * SECOND)));
		const end = run.isAsleep ? await run.end() : run.ran;
		expect(end.output.filter(({ json }) => json.error)).toHaveLength(0);
		expect(on.created).toBe(100);
	},
);

it('a service that asks for pauses for ever is given up after the timeout', async () => {
	on.service.configure({ createStatus: { status: 429, retryAfter: 120 } });
	const run = await on.start(imageNode({ timeout: 600 }), prompts('a', 'b'));
	expect((await run.end()).error?.message).toContain('HTTP 429');
	expect(on.elapsed).toBeLessThan(15 * 60 * SECOND);
});

it('a turn that is killed after three creates leaves its window in doubt: twice what the turn before has ordered', async () => {
	const run = await on.start(imageNode({ suspendAfter: 1 }), prompts(...many(200, 30 * SECOND)));
	const first = on.created;
	await run.wake();
	const before = on.created;
	const { wakes } = run.row;
	await passUntil(() => run.row.wakes > wakes);
	await passUntil(() => on.created >= before + 3);
	await run.n8n.kill(run);
	const again = await run.retry();
	const end = again.isAsleep ? await again.end() : again.ran;
	expect(
		end.output.filter(({ json }) => String(json.error).startsWith('It is not known')),
	).toHaveLength(2 * (before - first));
});
