import { readOptions } from '../commandLine';

/** What the demo's command line says. */
export interface DemoOptions {
	/** Exit after the batch. */
	once: boolean;
	/** Port of n8n. */
	port: number;
	/** Port of the simulated service; its media are on the one after it. */
	servicePort: number;
}

const USAGE = `Usage: npm start -- [options]

  --once                exit after the batch: 0 if every task ended as expected, else 1
  --port <n>            port of n8n (default 5678)
  --service-port <n>    port of the simulated service (default 4010); its media are on the next one`;

/** @throws where an argument is not understood */
export function parseOptions(): DemoOptions {
	const values = readOptions(USAGE, {
		once: { type: 'boolean', default: false },
		port: { type: 'string', default: '5678' },
		'service-port': { type: 'string', default: '4010' },
	});
	const options = {
		once: values.once,
		port: parsePort('--port', values.port),
		servicePort: parsePort('--service-port', values['service-port']),
	};
	if ([options.servicePort, options.servicePort + 1].includes(options.port)) {
		throw new Error(
			`n8n (--port ${options.port}) and the service (--service-port ${options.servicePort} and the one after it) need different ports.`,
		);
	}
	return options;
}

function parsePort(name: string, text: string): number {
	const port = Number(text);
	if (Number.isInteger(port) && port >= 1 && port < 65_535) return port;
	throw new Error(`${name} takes a port from 1 to 65534, not "${text}".`);
}
