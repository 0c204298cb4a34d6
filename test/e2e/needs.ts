import { missingInN8n, type Need } from '../n8n/differences';

/**
 * For what cannot be tested everywhere: it is skipped there, and says why.
 *
 * @param reason why not here; undefined where it can be tested
 * @param what names the tests in that line
 */
export function unless(reason: string | undefined, what: string) {
	if (reason === undefined) return { test, describe };
	console.log(`${what}: skipped. ${reason}`);
	return { test: test.skip, describe: describe.skip };
}

/** For what needs something that not every version of n8n has. */
export const needing = (need: Need, what: string) => unless(missingInN8n(need), what);

/** For what takes minutes, such as a night with five kills. */
export const ifAsked = (what: string) =>
	unless(process.env.LONG_TESTS ? undefined : 'LONG_TESTS is not set', what);
