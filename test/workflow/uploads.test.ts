import { LedgerRow } from '../../nodes/MediaGeneration/n8n/ledgerRow';
import { useProcessedData } from './processedData';
import {
	field,
	imageNode,
	item,
	jsonOf,
	keepsGoing,
	many,
	MINUTE,
	prompts,
	SECOND,
	stage,
} from './support';

useProcessedData();
const on = stage();

it('the id of a file of the input changes between two turns, as n8n does to an upload', async () => {
	const binary = {
		file: {
			data: 'filesystem-v2',
			mimeType: 'image/png',
			fileName: 'a.png',
			id: 'filesystem-v2:workflows/w/executions/temp/binary_data/x',
		},
	};
	const items = prompts(item('a', { latencyMs: 7 * MINUTE })).map(({ json }) => ({ json, binary }));
	const run = await on.start(imageNode(), items);
	expect(run.isAsleep).toBe(true);
	run.row.data = run.row.data.replaceAll('executions/temp/', 'executions/1/');
	const { output } = await run.end();
	expect(on.creates).toHaveLength(1);
	expect(field(output, 'taskId')).toEqual(on.taskIds);
});

it('the database loses its answer to the row of a turn', async () => {
	const run = await on.start(
		imageNode({ suspendAfter: 1, maxInFlight: 2 }, keepsGoing),
		prompts(...many(30, 40 * SECOND)),
	);
	const real = LedgerRow.prototype.insert;
	const spy = jest.spyOn(LedgerRow.prototype, 'insert').mockImplementationOnce(async function (
		this: LedgerRow,
		entries?: readonly string[],
	) {
		await real.call(this, entries);
		throw new Error('Connection terminated unexpectedly');
	});
	const { output } = await run.end();
	spy.mockRestore();
	const errors = jsonOf(output).filter(({ error }) => error !== undefined);
	expect(errors).toEqual([]);
});
