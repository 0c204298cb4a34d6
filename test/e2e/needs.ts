import { isLikeN8n3 } from '../n8n/settings';

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

/** What is otherwise where n8n is set as n8n 3 will be. */
const NOT_LIKE_N8N_3 = {
	engineV2: 'its engine v2 does not support queue mode',
	storedStops: 'a worker may store its own data over the stop of a caller',
	linksToFiles: 'links lead to a webhook processor, which serves no files without a load balancer',
	deadAddress: 'a run by hand is on a worker, which asks at the public address, where nobody is',
};
type Need = keyof typeof NOT_LIKE_N8N_3;

/** @returns why what needs something cannot be tested on this n8n; undefined where it can */
export const missingLikeN8n3 = (need: Need) =>
	isLikeN8n3() ? `n8n as n8n 3 will be set: ${NOT_LIKE_N8N_3[need]}.` : undefined;

/** For what n8n 3, as it is announced, will not have. */
export const needing = (need: Need, what: string) => unless(missingLikeN8n3(need), what);
