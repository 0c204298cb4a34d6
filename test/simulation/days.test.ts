import { dayBut, DAYS } from './dayCases';
import { simulate } from './simulate';

it.each(Object.entries(DAYS))('does not happen any more: %s', async (_, parts) => {
	expect((await simulate(dayBut(parts))).violations).toEqual([]);
});
