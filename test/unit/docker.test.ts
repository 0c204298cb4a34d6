import { parse } from 'yaml';

import { read } from './repository';

const FOLDER = 'examples/docker';

interface Service {
	image: string;
	command?: string | string[];
	environment: Record<string, string>;
	deploy?: { replicas: number };
	stop_grace_period?: string;
	volumes?: string[];
}

const { services } = parse(read(`${FOLDER}/compose.yaml`), { merge: true }) as {
	services: Record<'n8n' | 'worker' | 'postgres' | 'redis', Service>;
};

it('the Dockerfile takes the n8n that everything is tested on', () => {
	const { dependencies } = JSON.parse(read('test/n8n/versions/2.41.1/package.json')) as {
		dependencies: { n8n: string };
	};
	expect(read(`${FOLDER}/Dockerfile`)).toContain(`docker.n8n.io/n8nio/n8n:${dependencies.n8n}\n`);
});

describe('compose.yaml', () => {
	it('runs a main process and two workers alike, from the image with the package', () => {
		expect(services.worker.deploy?.replicas).toBe(2);
		expect(services.worker.command).toBe('worker');
		expect(services.worker.image).toBe(services.n8n.image);
		expect(services.worker.environment).toEqual(services.n8n.environment);
	});

	it('hides the package by no volume, and keeps what must be kept on one', () => {
		for (const service of [services.n8n, services.worker]) {
			expect(service.volumes).toEqual(['logs:/home/node/.n8n/logs']);
			expect(service.environment.N8N_LOG_OUTPUT).toBe('console,file');
		}
		expect(services.postgres.volumes).toHaveLength(1);
		expect(services.redis.volumes).toHaveLength(1);
		expect(services.redis.command).toEqual(['redis-server', '--appendonly', 'yes']);
	});

	it('sets what the tests in queue mode set', () => {
		const tested = [...read('test/e2e/cluster.ts').matchAll(/^\t{3}([A-Z][A-Z0-9_]+):/gm)]
			.map(([, name = '']) => name.replace(/^WEBHOOK_URL$/, 'N8N_WEBHOOK_URL'))
			// Only there: so that several can share one Redis, and a killed worker is noticed sooner.
			.filter((name) => !/_PREFIX$|^QUEUE_WORKER_/.test(name));
		expect(tested.length).toBeGreaterThan(8);
		expect(Object.keys(services.n8n.environment)).toEqual(expect.arrayContaining(tested));
	});

	it('lets a restart wait until a run that orders has ended its turn, and Docker wait for n8n, as the page says', () => {
		// A run sleeps when its first order is half a minute old, before the next of n8n's looks, which come once a minute.
		const turnSeconds = 30 + 60;
		const page = read('docs/admin.md');
		for (const service of [services.n8n, services.worker]) {
			const { N8N_GRACEFUL_SHUTDOWN_TIMEOUT: seconds } = service.environment;
			expect(Number(seconds)).toBeGreaterThanOrEqual(turnSeconds);
			expect(page).toContain(`\`N8N_GRACEFUL_SHUTDOWN_TIMEOUT=${seconds}\``);
			const [, minutes] = /^(\d+)m$/.exec(service.stop_grace_period ?? '') ?? [];
			expect(60 * Number(minutes)).toBeGreaterThan(Number(seconds));
			expect(page).toContain(`\`stop_grace_period: ${minutes}m\``);
		}
	});

	it('writes down no secret', () => {
		const { N8N_ENCRYPTION_KEY, DB_POSTGRESDB_PASSWORD } = services.n8n.environment;
		expect(N8N_ENCRYPTION_KEY).toMatch(/^\$\{N8N_ENCRYPTION_KEY:\?/);
		expect(DB_POSTGRESDB_PASSWORD).toMatch(/^\$\{POSTGRES_PASSWORD:\?/);
	});
});
