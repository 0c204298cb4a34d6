import type { History } from './history';

const COMPLETIONS: Record<History['node']['completion'], string> = {
	wait: 'waits for its tasks',
	trigger: 'lets its items leave at once, and a trigger start the workflow for each finished task',
	return: 'lets its items leave at once',
};

/** Where a history happens, in words: what is as usual is left out. */
export function settingOf({ n8n, slowestQueryMs, node, trigger, service }: History): string[] {
	const lines: Array<string | false> = [
		n8n === 'one process'
			? 'n8n: one process, "main".'
			: 'n8n: in queue mode, with "main", two workers and two processes that take callbacks, "webhook".',
		slowestQueryMs > 5 && `n8n's database: takes up to ${slowestQueryMs} ms for a query.`,
		`The node: has ${node.items} items and ${COMPLETIONS[node.completion]}.`,
		node.completion === 'wait' &&
			`The node: holds the run until ${node.suspendAfter} min after the last create, then suspends it.`,
		node.ifSomeFail === 'stop' && 'The node: stops where some items fail.',
		node.onError !== 'stopWorkflow' && `The node: has On Error set to ${node.onError}.`,
		node.maxTries > 1 && `The node: is tried ${node.maxTries} times by n8n (Retry On Fail).`,
		node.timeoutSeconds !== 60 && `The node: waits ${node.timeoutSeconds} s at most.`,
		node.pollIntervalSeconds !== 2 && `The node: reads a task every ${node.pollIntervalSeconds} s.`,
		node.maxInFlight !== 10 &&
			`The node: may have ${node.maxInFlight} tasks unfinished at once (Max Tasks at the Same Time).`,
		node.budgetItems > 0 && `The node: has a budget for ${node.budgetItems} items.`,
		node.isChanging && 'The node: has an expression that gives something else each time.',
		node.downloads && 'The node: downloads the results.',
		node.retryFailed > 0 &&
			`The node: creates a failed task anew, ${node.retryFailed} times at most.`,
		trigger.maxTries > 1 && 'The trigger: is tried twice by n8n (Retry On Fail).',
		trigger.downloads && 'The trigger: downloads the results.',
		service.maxUnfinished > 0 &&
			`The service: refuses where ${service.maxUnfinished} of the tasks are unfinished.`,
		service.maxPerSecond > 0 &&
			`The service: takes ${service.maxPerSecond} of the creates in a second, and refuses the others.`,
		service.saysRetryAfter && 'The service: says how long to wait where it refuses (Retry-After).',
		service.lagMs > 0 && `The service: knows nothing of a new task for ${service.lagMs / 1000} s.`,
		service.isTalkative && 'The service: repeats the callback address and the key in its records.',
		service.sendsTwice && 'The service: sends every callback twice.',
	];
	return lines.filter((line) => line !== false);
}
