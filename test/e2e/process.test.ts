import { join } from 'node:path';

import { shortMinute } from '../n8n/settings';
import { testCallbacks } from './process/callbacks';
import { testCallers } from './process/callers';
import { testChecks } from './process/checks';
import { testCredential } from './process/credential';
import { MINUTE_HERE, testFacts, testLongFacts } from './process/facts';
import { testSleeping } from './process/sleeping';
import { atTheSameTime } from './run';
import { openAccount, openScene } from './scene';

/**
 * One process of n8n. What takes minutes, because n8n looks once a minute, happens beside the tests that come one after the
 * other, on an account of its own.
 */
const scene = openScene({
	env: { ...shortMinute(MINUTE_HERE), N8N_CUSTOM_EXTENSIONS: join(__dirname, 'trial') },
	clears: false,
});
const account = openAccount(scene);
/** For stories that need one of their own. */
const linked = openAccount(scene, false);
const keys = openAccount(scene, false);
const story = atTheSameTime(test, 500);

describe('one after the other', () => {
	describe('a caller who waits', () => testCallers(account));
	describe('callbacks', () => testCallbacks(account));
	describe('the credential', () => testCredential(account));
	// Last, since it looks at single seconds.
	describe('what n8n does', () => testFacts(account));
});

describe('at the same time', () => {
	testSleeping(scene, keys, story);
	testChecks(scene, story);
	testLongFacts(scene, linked, story);
});
