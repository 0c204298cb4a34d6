import { Journal } from '../../nodes/MediaGeneration/create/journal';
import { TurnLease } from '../../nodes/MediaGeneration/n8n/turnLease';
import { standBesideTwin } from '../../nodes/MediaGeneration/run/twin';
import { executeContext } from './engine';
import { useProcessedData } from './processedData';
import { pass, passTime, virtualTime } from './time';
import { MINUTE, SECOND } from '../durations';

useProcessedData();
virtualTime();

it('a turn is under way elsewhere until it ends, and dead a while after', async () => {
	const context = executeContext();
	const turn = new TurnLease(context, 1);
	const again = new TurnLease(context, 1);
	expect(await passTime(turn.begin())).toBe('first');
	await pass(10 * MINUTE);
	expect(await passTime(again.begin())).toBe('underWay');
	turn.end();
	await pass(3 * MINUTE);
	expect(await passTime(again.begin())).toBe('dead');
	again.end();
	expect(await passTime(new TurnLease(context, 2).hadBegun())).toBe(false);
});

it('a turn tells n8n again and again that it runs: its shutdown would not wait otherwise', async () => {
	const context = executeContext();
	const told: string[] = [];
	context.additionalData.setExecutionStatus = (status) => void told.push(status);
	const turn = new TurnLease(context, 1);
	await passTime(turn.begin());
	await pass(9 * SECOND);
	turn.end();
	await pass(MINUTE);
	expect(told).toEqual(['running', 'running']);
});

it('a second wake lets nothing out if n8n has removed the run at its end, as with Save successful executions: off', async () => {
	const context = executeContext();
	const turn = new TurnLease(context, 0);
	await passTime(turn.begin());
	turn.end();
	const twin = standBesideTwin(context, new Journal(context), new TurnLease(context, 0));
	const first = Promise.race([twin, pass(10 * MINUTE).then(() => 'stands aside')]);
	expect(await first).toBe('stands aside');
});
