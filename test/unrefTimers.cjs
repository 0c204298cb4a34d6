/**
 * Where a node asks with a time limit, the timer of the limit goes on after the answer: n8n's `sleep` cannot be cut short.
 * Such a timer must not keep the process of the tests.
 */
const { setTimeout: start } = globalThis;

globalThis.setTimeout = Object.assign((...given) => start(...given).unref(), start);
