import type { INodeProperties } from 'n8n-workflow';
import { parse } from 'yaml';

import { MediaGeneration } from '../../nodes/MediaGeneration/MediaGeneration.node';
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

	it('lets a restart wait until a first turn has ended, and Docker wait for n8n', () => {
		const { options } = new MediaGeneration().description.properties.find(
			({ name }) => name === 'options',
		) as { options: INodeProperties[] };
		const sleepAfter = options.find(({ name }) => name === 'suspendAfter');
		const turnSeconds = 60 * Number(sleepAfter?.default);
		for (const service of [services.n8n, services.worker]) {
			const seconds = Number(service.environment.N8N_GRACEFUL_SHUTDOWN_TIMEOUT);
			expect(seconds).toBeGreaterThan(turnSeconds);
			const [, minutes] = /^(\d+)m$/.exec(service.stop_grace_period ?? '') ?? [];
			expect(60 * Number(minutes)).toBeGreaterThan(seconds);
		}
	});

	it('writes down no secret', () => {
		const { N8N_ENCRYPTION_KEY, DB_POSTGRESDB_PASSWORD } = services.n8n.environment;
		expect(N8N_ENCRYPTION_KEY).toMatch(/^\$\{N8N_ENCRYPTION_KEY:\?/);
		expect(DB_POSTGRESDB_PASSWORD).toMatch(/^\$\{POSTGRES_PASSWORD:\?/);
	});
});
