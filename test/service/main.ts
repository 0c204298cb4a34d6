import { readOptions, wholeNumber } from '../commandLine';
import { startService } from './service';

const USAGE = `Usage: npx tsx test/service/main.ts [--port <n>]

  --port <n>   port of the API (default 4010); the media are on the next one`;

async function main(): Promise<void> {
	const options = readOptions(USAGE, { port: { type: 'string', default: '4010' } });
	const port = wholeNumber('port', options.port);
	const service = await startService({ port, mediaPort: port + 1 });
	console.log(`The simulated media generation service is running.

  Base URL   ${service.url}
  API key    ${service.apiKey}

Create a first task:

  curl ${service.url}/api/generate \\
    -H 'Authorization: Bearer ${service.apiKey}' \\
    -H 'Content-Type: application/json' \\
    -d '{"model":"imagevendor/image-model-2-text-to-image","input":{"prompt":"A lighthouse at dawn"}}'

Ctrl-C stops it.`);

	const stop = () => void service.close().then(() => process.exit(0));
	process.once('SIGINT', stop);
	process.once('SIGTERM', stop);
}

main().catch((error: Error) => {
	console.error(error.message);
	process.exitCode = 1;
});
