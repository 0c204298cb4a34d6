import { parseArgs } from 'node:util';

import { startService } from './service';

/** The port of the command line. The media are on the one after it. */
function readPort(): number {
	const { values } = parseArgs({ options: { port: { type: 'string', default: '4010' } } });
	const port = Number(values.port);
	if (!Number.isInteger(port) || port < 1 || port > 65534) {
		throw new Error(
			`--port takes a number from 1 to 65534, not "${values.port}"; the media are on the port after it.`,
		);
	}
	return port;
}

async function main(): Promise<void> {
	const port = readPort();
	const service = await startService({ port, mediaPort: port + 1 });
	const page = new URL('/', service.url).href;
	console.log(`The simulated media generation service is running.

  Base URL   ${service.url}
  API key    ${service.apiKey}
  Page       ${page}   (shows every task and its media as they come in)

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
