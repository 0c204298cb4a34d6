/**
 * Loaded into each process of n8n, so that executions that wait for minutes wait for seconds: n8n looks for those that
 * are due every SHORT_MINUTE_MS, and a minute that a node asks n8n to wait for lasts as long. The clock, the deadlines of
 * tasks and all other timers are as they are. A test that is about minutes on the clock needs an n8n without this file.
 *
 * A wait that was to be shorter than SHORT_MINUTE_MS is not shortened, so that a deadline is still met by one wait.
 * Dates that only stand for "until something happens" are a thousand years away, and stay as they are.
 */
const Module = require('node:module');

const MINUTE_MS = 60_000;
const SHORT_MINUTE_MS = Number(process.env.SHORT_MINUTE_MS);
const FOR_EVER_MS = 100 * 365 * 24 * 60 * MINUTE_MS;

if (!(SHORT_MINUTE_MS > 0)) throw new Error('SHORT_MINUTE_MS is to say how long a minute lasts.');

function shortened(waitTill) {
	const waitMs = waitTill.getTime() - Date.now();
	if (waitMs > FOR_EVER_MS || waitMs <= SHORT_MINUTE_MS) return waitTill;
	const shortMs = Math.max((waitMs * SHORT_MINUTE_MS) / MINUTE_MS, SHORT_MINUTE_MS);
	return new Date(Date.now() + shortMs);
}

/** @param wrap makes another method of a method of a class that n8n loads from a file; older versions have not all */
function replaceMethod(file, className, method, wrap) {
	const load = Module._extensions['.js'];
	Module._extensions['.js'] = (module, filename) => {
		load(module, filename);
		const prototype = filename.endsWith(file) && module.exports[className]?.prototype;
		if (!prototype?.[method]) return;
		prototype[method] = wrap(prototype[method]);
		replaced.add(method);
	};
}

const replaced = new Set();

// What a node asks for.
replaceMethod(
	'base-execute-context.js',
	'BaseExecuteContext',
	'putExecutionToWait',
	(original) =>
		async function (waitTill) {
			return await original.call(this, shortened(waitTill));
		},
);

/** By execution and date: when n8n was told that it is due. */
const told = new Map();

/**
 * While it starts n8n looks for executions that are due, and then takes for crashed whatever its log has no end of. It
 * mixes up an execution that it has just taken up. So nothing is due before it is through with that.
 */
let hasRecovered = false;
replaceMethod(
	'message-event-bus.js',
	'MessageEventBus',
	'initialize',
	(original) =>
		async function (...given) {
			await original.apply(this, given);
			hasRecovered = true;
		},
);

// What was asked for before n8n was started with this file. Each wait is told once in a real minute: n8n may still be
// taking up an execution at its next look, and would take it up a second time, with the data of before.
replaceMethod(
	'execution.repository.js',
	'ExecutionRepository',
	'getWaitingExecutions',
	(original) =>
		async function () {
			if (!hasRecovered) return [];
			const executions = await original.call(this);
			return executions
				.filter(({ id, waitTill }) => {
					const wait = `${id} ${waitTill.toISOString()}`;
					if (Date.now() - (told.get(wait) ?? 0) < MINUTE_MS) return false;
					told.set(wait, Date.now());
					return true;
				})
				.map((each) => ({ ...each, waitTill: shortened(each.waitTill) }));
		},
);

// n8n also looks for executions whose sub-execution has ended, in case that it died in between. It is to do so as seldom
// as it does: more often, it would meet those that it is just taking up.
replaceMethod(
	'wait-tracker.js',
	'WaitTracker',
	'resumeParentsOfFinishedSubExecutions',
	(original) => {
		let next = 0;
		return async function () {
			if (Date.now() < next) return;
			next = Date.now() + MINUTE_MS;
			await original.call(this);
		};
	},
);

// When n8n looks.
const start = globalThis.setInterval;
globalThis.setInterval = (work, ms, ...more) => {
	const isTick = ms === MINUTE_MS && new Error().stack.includes('wait-tracker');
	// It has loaded all that runs executions by then.
	const methods = ['putExecutionToWait', 'getWaitingExecutions', 'initialize'];
	const isReplaced = methods.every((method) => replaced.has(method));
	if (isTick && !isReplaced) throw new Error('This n8n suspends executions in another way.');
	return start(work, isTick ? SHORT_MINUTE_MS : ms, ...more);
};
