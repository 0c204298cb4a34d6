import { missingInN8n, type Need } from '../n8n/differences';

/**
 * For what needs something that not every version of n8n has: it is skipped there, and says why.
 *
 * @param what names the tests in that line
 */
export function needing(need: Need, what: string): { test: jest.It; describe: jest.Describe } {
	const missing = missingInN8n(need);
	if (missing === undefined) return { test, describe };
	console.log(`${what}: skipped. ${missing}`);
	return { test: test.skip, describe: describe.skip };
}
