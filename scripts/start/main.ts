import { readOptions, wholeNumber } from '../../test/commandLine';
import { installN8n } from '../../test/n8n/install';
import { packPackage } from '../../test/n8n/package';
import { assertPortFree } from '../../test/n8n/ports';
import { startService } from '../../test/service/service';
import { runBatch } from './batch';
import { DEMO_OWNER, startEditor } from './editor';
import { saveCredential, saveExamples, saveModelCredential } from '../../test/n8n/examples';
import { startLanguageModel } from '../../test/n8n/languageModel';

const USAGE = `Usage: npm start -- [options]

  --once                exit after the batch: 0 if every task ended as expected, else 1
  --port <n>            port of n8n (default 5678)
  --service-port <n>    port of the simulated service (default 4010); its media are on the next one`;

const BATCH = 'batch-of-prompts';
/** Long enough to watch, with tasks that overtake each other. */
const LATENCY_MS = [2_000, 6_000] as const;

/** What has been started, to be stopped in reverse. */
const running: Array<() => Promise<void>> = [];
/** The batch is done. */
let isUp = false;
let stopping = false;

/** @returns whether every task of the batch ended as expected */
async function demo(port: number, servicePort: number, once: boolean): Promise<boolean> {
	await assertPortFree(port, 'n8n (--port)');
	await assertPortFree(servicePort, 'the simulated service (--service-port)');
	await assertPortFree(servicePort + 1, "the simulated service's media (--service-port)");

	const install = await installN8n();
	const { tarball, sizeBytes } = await packPackage();
	console.log(`The package is ${(sizeBytes / 1024).toFixed(0)} kB: ${tarball}`);

	const settings = { latencyMs: LATENCY_MS };
	const service = await startService({ port: servicePort, mediaPort: servicePort + 1, settings });
	running.push(() => service.close());
	const model = await startLanguageModel();
	running.push(() => model.close());

	console.log(`Starting n8n ${install.version} with the package installed …`);
	const { n8n, client } = await startEditor(install, port, tarball);
	// An orderly stop waits for what n8n is executing; an interrupted batch is not worth it.
	running.push(() => (isUp ? n8n.stop() : n8n.kill()));
	void n8n.exited.then(async (how) => {
		if (stopping) return;
		console.error(`n8n ${how}. Its log is ${n8n.logFile} and ends with:\n${n8n.logTail()}`);
		await stop(1);
	});

	const workflows = await saveExamples(client, [
		await saveCredential(client, { baseUrl: service.url, apiKey: service.apiKey }),
		await saveModelCredential(client, model.url),
	]);
	const batch = workflows.get(BATCH);
	if (batch === undefined) throw new Error(`examples/${BATCH}.json is missing.`);
	const isAsExpected = await runBatch(client, batch, service);

	if (!once) {
		console.log(`
  Editor    ${n8n.url}/home/workflows
  Login     ${DEMO_OWNER.email}   ${DEMO_OWNER.password}
  Service   ${service.url}

The example workflows are in the editor:
${[...workflows.values()].map(({ id, name }) => `  ${n8n.url}/workflow/${id}   ${name}`).join('\n')}
They are restored at every start; keep changes in a copy.

Ctrl-C stops everything.`);
	}
	return isAsExpected;
}

/** Stops all that was started and ends; a second signal does not wait for it. */
async function stop(exitCode: number): Promise<void> {
	if (stopping) process.exit(exitCode || 1);
	stopping = true;
	for (const end of running.splice(0).reverse()) await end();
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
	const options = readOptions(USAGE, {
		once: { type: 'boolean', default: false },
		port: { type: 'string', default: '5678' },
		'service-port': { type: 'string', default: '4010' },
	});
	const port = wholeNumber('port', options.port);
	const servicePort = wholeNumber('service-port', options['service-port']);
	const isAsExpected = await demo(port, servicePort, options.once);
	isUp = true;
	if (options.once) await stop(isAsExpected ? 0 : 1);
}

main().catch(async (error: unknown) => {
	if (stopping) return;
	console.error(`\n${error instanceof Error ? error.message : String(error)}`);
	await stop(1);
});
