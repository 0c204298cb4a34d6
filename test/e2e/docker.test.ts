import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';

import { installN8n } from '../n8n/install';
import { DEFAULT_VERSION } from '../n8n/version';

test('every variable of the Docker example is one that n8n reads', async () => {
	const { folder } = await installN8n(DEFAULT_VERSION);
	const modules = join(folder, 'node_modules');
	const known = new Set(
		[join(modules, 'n8n/dist'), join(modules, 'n8n-core/dist'), join(modules, '@n8n/config/dist')]
			.flatMap((root) =>
				readdirSync(root, { recursive: true, encoding: 'utf8' })
					// The rules for later versions name variables without reading them.
					.filter((file) => file.endsWith('.js') && !file.includes('breaking-changes'))
					.map((file) => readFileSync(join(root, file), 'utf8')),
			)
			.flatMap((text) => [...text.matchAll(/\bEnv\)\('([A-Z0-9_]+)'|process\.env\.([A-Z0-9_]+)/g)])
			.map(([, declared, read]) => declared ?? read ?? ''),
	);
	expect(known.size).toBeGreaterThan(300);
	const compose = readFileSync(join(__dirname, '../../examples/docker/compose.yaml'), 'utf8');
	const { services } = parse(compose, { merge: true }) as {
		services: { n8n: { environment: Record<string, string> } };
	};
	const names = Object.keys(services.n8n.environment);
	expect(names.filter((name) => !known.has(name))).toEqual([]);
	expect(known.has('N8N_WEBHOOK_URLS')).toBe(false);
}, 900_000);
