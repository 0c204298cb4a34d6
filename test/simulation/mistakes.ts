import { historyOf } from './search';
import { simulate } from './simulate';
import { NodeSources } from './world/nodeSources';

/**
 * Mistakes that are made on purpose, one for each sentence: the first words of the sentence, what is wrong, a file below
 * `nodes/MediaGeneration`, a text in it, and what the text becomes.
 */
export const MISTAKES = `
what is paid for or under way → a create without an answer counts as not taken → create/createTask.ts → error.taken === 'unknown' → false
every task that the service made → the log does not name a created task → create/createTask.ts → this.log(\`created task \${created.value.taskId}\`, plan, isLate); → ;
an item is in doubt only → a turn whose row is not there is taken for begun → run/beginTurn.ts → if (windows === 0 && !hasBegun) continue; → ;
Max Cost is looked at → the budget is read and not kept → plan/planRun.ts → Math.min(least, maxCostUsd || least) → least
a failed task is made anew → one task more than allowed is created → run/nextStep.ts → if (count > plan.retryFailed) → if (count > plan.retryFailed + 1)
a failed task that was charged → a failed task is put out as free → report/taskItems.ts → task.creditsConsumed ?? (state === 'FAILURE' ? 0 : null) → state === 'FAILURE' ? 0 : task.creditsConsumed ?? null
a create that is answered 303 → a create that is answered 303 counts as not taken → create/createTask.ts → error.taken === 'unknown' → error.taken === 'unknown' && error.statusCode !== 303
what ends within Sleep After → a young run sleeps like an old one → run/turn.ts → return stretch.beganAt + suspendAfterMs; → return stretch.beganAt + Math.min(suspendAfterMs, 20_000);
no minute passes → a sleep lasts five minutes at least → read/readWindow.ts → return Math.max(now, Math.min(readAt, orderAt, due)); → return Math.max(now + 300_000, Math.min(readAt, orderAt, due));
a batch takes at most → half of the places are used → create/createQueue.ts → if (underWay + unfinished >= most || → if (underWay + unfinished >= most / 2 ||
no item is lost → the first refusal of an item is its last → create/circuitBreaker.ts → if (before === undefined) { → if (before === undefined) return 'its own'; if (false) {
a stretch of 5xx → a run does not rest after orders in doubt → create/circuitBreaker.ts → const MOST_DOUBTS = 3; → const MOST_DOUBTS = 300;
n8n's time limit → the node knows of no time limit → plan/planWait.ts → endsAt: limitAt - lastMs }; → endsAt: Infinity };
no task is read twice → the least interval is half a second → service/client.ts → export const MIN_READ_INTERVAL_MS = 2_000; → export const MIN_READ_INTERVAL_MS = 500;
a refused create waits → the pause that the service asks for is forgotten → create/createQueue.ts → this.keepTo(now + error.retryAfterMs, true); → this.keepTo(now, true);
a task of which the service says → what the service says of a task is never believed → run/nextStep.ts → denied.ms < DENIED_MS → true
there are never more tasks → one task more is in flight than the user allows → create/createQueue.ts → if (underWay + unfinished >= most || → if (underWay + unfinished >= most + 1 ||
a service that refuses → the pauses after refusals do not grow → create/accountLimits.ts → const PAUSE_GROWTH = 3; → const PAUSE_GROWTH = 1;
no item of a run that may sleep → the end of a turn ends an item → create/createQueue.ts → if (this.turn.isOver || !order.isInWindow) return undefined; → if (this.turn.isOver || !order.isInWindow) throw ItemError.from(this.refusal ?? new ServiceError('tooManyRequests', 'The time is over'));
a run that is awake for longer → the first turn has no end → run/turn.ts → return stretch.beganAt + suspendAfterMs; → return Infinity;
what n8n has stored goes on → a retry of any killed execution is refused → run/beginTurn.ts → if (journal.beginning === 'first') await refuseLost → if (journal.beginning === 'retry') throw LOST; await refuseLost
a retry of a run that was killed in its first turn → a retry of a killed first turn orders again → run/beginTurn.ts → if (journal.beginning === 'first') await refuseLost(context, journal); → ;
of several retries → each retry has the claim → run/beginTurn.ts → throw await goesOn(row, \`Another retry of execution \${execution}\`); → continue;
after a stop → nobody asks for a stop of the caller → n8n/internals.ts → if (!own && !isCalled(context)) → if (!own)
no retry lets the bare → the currently saved workflow lets the bare input out → n8n/runAgain.ts → data: { main: [ifPassedOver] }, → data: { main: [inputOfSleeper] },
every item says → a task that is not finished counts as finished → run/nextStep.ts → if (!hasEnded(task) && !isLinkless → if (false && !isLinkless
every run that waits goes on once → a run puts out its items when it goes to sleep → n8n/runAgain.ts → return [[]]; → return [ifPassedOver];
every item comes out once → the items leave in another order → report/taskItems.ts → pairedItem: { item: itemIndex }, → pairedItem: { item: 0 },
a caller that hangs up → the caller's minute is not known → plan/planWait.ts → const MCP_SECONDS = 50; → const MCP_SECONDS = 80;
every execution comes to its end → n8n's store is not asked before a sleep → run/bringTask.ts → if (!(await storeAnswers(context))) → if (false)
every finished task starts → the ledger is not looked at → callback/ledger.ts → if (isThere && tried[key] === undefined) return await row.isOf(own); → if (isThere && tried[key] === undefined) return true;
a callback that does not come → nobody makes up for a lost callback → callback/delivery.ts → if (deliveries.length === 0) return; → if (deliveries.length >= 0) return;
every start has the reference → the trigger forgets the reference → callback/gate.ts → ...(typeof reference === 'string' && { reference }) → ...{}
no callback is taken → an event's own id is taken for the id of its task → callback/gate.ts → const taskId = idIn(parsedJson(String(rawBody))) → const taskId = (context.getBodyData().id as string | undefined) ?? idIn(parsedJson(String(rawBody)))
the key and the tokens → keys are not cut out of what the service says → service/redactSecrets.ts → left.replaceAll(secret, '***') → left
a callback without its token → a token does not cover its reference → callback/gate.ts → isTokenValid(token, each, apiKey, reference) → isTokenValid(token, each, apiKey, reference) || isTokenValid(token, each, apiKey, undefined)
`
	.trim()
	.split('\n')
	.map((line) => {
		const [words = '', what = '', file = '', from = '', to = ''] = line.split(' → ');
		return { words, what, file, from, to };
	});

/** Makes each mistake, one at a time, and tells in which seed its sentence notices it. */
export async function plantAll(seeds: number, only = ''): Promise<void> {
	for (const { words, what, file, from, to } of MISTAKES) {
		if (!`${words} ${what}`.includes(only)) continue;
		const sources = new NodeSources(undefined, (path, text) =>
			path.endsWith(`nodes/MediaGeneration/${file}`) ? text.replace(from, () => to) : text,
		);
		let found = 'none';
		for (let seed = 1; seed <= seeds && found === 'none'; seed++) {
			const { violations } = await simulate(historyOf(seed), sources);
			if (violations.some(({ sentence }) => sentence.startsWith(words))) found = String(seed);
		}
		console.log(`| ${words} | ${what} | ${found} |`);
	}
}
