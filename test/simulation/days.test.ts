import { dayBut, DAYS, STILL } from './dayCases';
import { simulate } from './simulate';

/** Days of a user that once went wrong. */

const mended = Object.entries(DAYS).filter(([name]) => !STILL.includes(name));

it.each(mended)('does not happen: %s', async (_, parts) => {
	expect((await simulate(dayBut(parts))).violations).toEqual([]);
});
