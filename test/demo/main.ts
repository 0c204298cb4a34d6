import { installN8n } from '../n8n/install';
import { packPackage } from '../n8n/package';
import { assertPortFree } from '../n8n/ports';
import { startService } from '../service/service';
import { differences, expectedTasks, runBatch } from './batch';
import { DEMO_OWNER, startEditor } from './editor';
import { readExample, saveCredential, saveExamples, saveModelCredential } from './examples';
import { startLanguageModel } from './languageModel';
import { type DemoOptions, parseOptions } from './options';
import { Progress } from './progress';
import { renderTable } from './table';

const BATCH = 'batch-of-prompts';
/** Long enough to watch, with tasks that overtake each other. */
const LATENCY_MS = [2_000, 6_000] as const;

/** What has been started, to be stopped in reverse. */
const running: Array<() => Promise<void>> = [];
/** The batch is done. */
let isUp = false;
let stopping = false;

async function stopAll(): Promise<void> {
	for (const stop of running.splice(0).reverse()) await stop();
}

/** @returns whether every task of the batch ended as expected */
async function demo(options: DemoOptions): Promise<boolean> {
	await assertPortFree(options.port, 'n8n (--port)');
	await assertPortFree(options.servicePort, 'the simulated service (--service-port)');
	await assertPortFree(options.servicePort + 1, "the simulated service's media (--service-port)");

	const install = await installN8n();
	const { tarball, sizeBytes } = await packPackage();
	console.log(`The package is ${(sizeBytes / 1024).toFixed(0)} kB: ${tarball}`);

	const service = await startService({
		port: options.servicePort,
		mediaPort: options.servicePort + 1,
		settings: { latencyMs: LATENCY_MS },
	});
	running.push(() => service.close());

	const model = await startLanguageModel();
	running.push(() => model.close());

	console.log(`Starting n8n ${install.version} with the package installed …`);
	const { n8n, client } = await startEditor(install, options.port, tarball);
	// An orderly stop waits for what n8n is executing; an interrupted batch is not worth it.
	running.push(() => (isUp ? n8n.stop() : n8n.kill()));
	void n8n.exited.then(async (how) => {
		if (stopping) return;
		console.error(`n8n ${how}. Its log is ${n8n.logFile} and ends with:\n${n8n.logTail()}`);
		await stop(1);
	});

	const credential = await saveCredential(client, {
		baseUrl: service.url,
		apiKey: service.apiKey,
	});
	const modelCredential = await saveModelCredential(client, model.url);
	const workflows = await saveExamples(client, [credential, modelCredential]);
	const batch = workflows.get(BATCH);
	if (batch === undefined) throw new Error(`examples/${BATCH}.json is missing.`);

	const expected = expectedTasks(readExample(BATCH));
	console.log(`\nRunning "${batch.name}" in n8n: ${expected.length} prompts`);
	const progress = new Progress(expected.length);
	const results = await runBatch(client, batch, expected, service, (finished) =>
		progress.update(finished),
	);
	progress.done();
	console.log(renderTable(results));

	const differing = differences(expected, results);
	const failures = expected.filter(({ state }) => state === 'FAILURE').length;
	console.log(
		differing.length === 0
			? `As expected: ${expected.length - failures} succeeded and ${failures} failed on purpose.`
			: `Not as expected:\n${differing.map((line) => `  - ${line}`).join('\n')}`,
	);

	if (!options.once) {
		console.log(`
  Editor    ${n8n.url}/home/workflows
  Login     ${DEMO_OWNER.email}   ${DEMO_OWNER.password}
  Service   ${new URL('/', service.url).href}

The example workflows are in the editor:
${[...workflows.values()].map(({ id, name }) => `  ${n8n.url}/workflow/${id}   ${name}`).join('\n')}
They are restored at every start; keep changes in a copy.

Ctrl-C stops everything.`);
	}
	return differing.length === 0;
}

/** Stops all that was started and ends; a second signal does not wait for it. */
async function stop(exitCode: number): Promise<void> {
	if (stopping) process.exit(exitCode || 1);
	stopping = true;
	await stopAll();
	process.exit(exitCode);
}

/**
 * Calls back when the demo is told to end. A terminal tells it directly; a signal that is sent to npm ends
 * the shell that npm put in between, and goes no further.
 */
function onEnd(callback: () => void): void {
	for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, callback);
	if (process.env.npm_lifecycle_event === undefined) return;
	const shell = process.ppid;
	const watch = setInterval(() => {
		if (process.ppid === shell) return;
		clearInterval(watch);
		callback();
	}, 500);
	watch.unref();
}

async function main(): Promise<void> {
	onEnd(() => {
		console.log('\nStopping …');
		void stop(isUp ? 0 : 130);
	});
	const options = parseOptions();
	const asExpected = await demo(options);
	isUp = true;
	if (options.once) await stop(asExpected ? 0 : 1);
}

main().catch(async (error: unknown) => {
	if (stopping) return;
	console.error(`\n${error instanceof Error ? error.message : String(error)}`);
	await stop(1);
});
