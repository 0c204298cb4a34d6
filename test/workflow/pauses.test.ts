import { useProcessedData } from './processedData';
import { imageNode, many, prompts, SECOND, stage } from './support';

useProcessedData();
/** Pauses that the service asks for, and that outlast a turn. */

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
