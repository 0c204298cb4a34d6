import * as diagnostics from 'node:diagnostics_channel';
import type { ClientRequest } from 'node:http';

import { ofThisProcess } from '../service/effects';
import { tick } from '../virtualTime';
import { HistoryTime } from './n8n/time';

/** HTTP requests of this process that are under way, of nock's and of real ones. */
let underWay = 0;

const REQUEST_START = 'http.client.request.start';

function count(message: unknown): void {
	const { request } = message as { request: ClientRequest };
	underWay++;
	request.once('close', () => underWay--);
}

diagnostics.subscribe(REQUEST_START, count);
// The channel is the process's, which runs one test file after the other.
afterAll(() => diagnostics.unsubscribe(REQUEST_START, count));

/** The time of the present test, where it is a virtual one. */
export let time: HistoryTime;

/** Gives each test of a file, or of a `describe`, a virtual time of its own. */
export function virtualTime(now?: number): void {
	const { later } = ofThisProcess;
	beforeEach(() => {
		time = new HistoryTime(now);
		// The service goes on where a process of n8n dies.
		ofThisProcess.later = (ms, run) => time.later(ms, run);
	});
	afterEach(() => {
		ofThisProcess.later = later;
		time.end();
	});
}

/** Whether a request, a file or a lookup is under way. On a busy machine each of them takes any number of turns. */
const isBusy = () =>
	underWay > 0 || process.getActiveResourcesInfo().some((name) => /Req|ConnectWrap/.test(name));

/** Lets everything happen that needs no time to pass: requests with their answers, and what follows from them. */
export async function settle(): Promise<void> {
	for (let quiet = 0; quiet < 10; quiet++) {
		await tick();
		if (isBusy()) quiet = 0;
	}
}

/** So many timers no work of a test needs. */
const MOST_TIMERS = 100_000;

/**
 * Lets time pass until a condition holds: from one timer to the next, and never while a request is under way. So hours
 * pass in no time, and every run sees the same times.
 *
 * @throws where it never holds
 */
export async function passUntil(condition: () => boolean): Promise<void> {
	for (let timers = 0; timers < MOST_TIMERS; timers++) {
		await settle();
		time.rest();
		if (condition()) return;
		await time.next();
	}
	throw new Error(`The work has not ended after ${MOST_TIMERS} timers`);
}

/** Lets time pass until the work is done. @throws where the work does not end */
export async function passTime<T>(work: Promise<T>): Promise<T> {
	let done = false;
	const noteEnd = () => (done = true);
	work.then(noteEnd, noteEnd);
	await passUntil(() => done);
	return await work;
}

/** Lets so many milliseconds pass. */
export async function pass(ms: number): Promise<void> {
	const until = Date.now() + ms;
	time.later(ms, () => undefined);
	await passUntil(() => Date.now() >= until);
}
