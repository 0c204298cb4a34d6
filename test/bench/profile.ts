import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import type { Profiler } from 'node:inspector';
import { resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { sum } from 'simple-statistics';

import { Collector } from '../e2e/collector';
import { latenciesOf, measureRun, oursFor } from './batch';
import { type Bench, withBench } from './bench';
import { callOneByOne, finishedTasks, openEntrances } from './callback';
import type { BenchOptions } from './options';
import type { Profile } from './results';

const FOLDER = resolve(__dirname, '../artefacts/bench');
const CALLS = 60;
const BATCH = 200;
const SHOWN_FUNCTIONS = 12;

const OURS = 'this package';
const BELOW_OURS = 'what this package calls of n8n';

/** Where a function lives, by the address of its script; the first that fits. */
const PLACES: Array<[RegExp, string]> = [
	[/n8n-nodes-media-generation[\\/]dist/, OURS],
	[/n8n-workflow|expression-runtime|isolated-vm|tournament/, "n8n's expression engine"],
	[/typeorm|sqlite|[\\/]@n8n[\\/]db[\\/]/, 'the database'],
	[/[\\/]n8n-core[\\/]|[\\/]n8n[\\/]dist|[\\/]@n8n[\\/]/, 'n8n'],
	[/^node:/, 'Node.js'],
	[/node_modules/, "n8n's libraries"],
];

/** Records where n8n's CPU time goes for callbacks and for a batch. */
export async function profileWork(
	options: BenchOptions,
	log: (line: string) => void,
): Promise<Profile[]> {
	mkdirSync(FOLDER, { recursive: true });
	const file = resolve(FOLDER, 'n8n.cpuprofile');
	const env = {
		NODE_OPTIONS: `--require ${resolve(__dirname, 'profiler.cjs')}`,
		BENCH_PROFILE: file,
	};
	return await withBench(options, log, env, async (bench) => {
		const calls = options.quick ? 10 : CALLS;
		const { ours, least, refused } = await openEntrances(bench);
		const [first = ''] = finishedTasks(bench, 1);
		const repeated = Array.from({ length: calls }, () => first);
		const record = async (what: string, units: number, work: () => Promise<unknown>) => {
			// What has not been called before costs more.
			await bench.usage.quiet();
			const { profile, functions } = await recordWhile(bench, file, what, units, work);
			log(`${what}: ${profile.msEach.toFixed(1)} ms each`);
			for (const line of functions) log(`    ${line}`);
			return profile;
		};
		await callOneByOne(bench, ours.url, finishedTasks(bench, 5), 200);
		await callOneByOne(bench, ours.url, [first], 200);
		await callOneByOne(bench, least.url, finishedTasks(bench, 5), 200);
		const profiles = [
			await record('An accepted callback', calls, async () => {
				await callOneByOne(bench, ours.url, finishedTasks(bench, calls), 200);
			}),
			await record('A call of the least third-party trigger', calls, async () => {
				await callOneByOne(bench, least.url, finishedTasks(bench, calls), 200);
			}),
			await record('A duplicate', calls, async () => {
				await callOneByOne(bench, ours.url, repeated, 200);
			}),
			await record('A refusal', calls, async () => {
				await callOneByOne(bench, refused.ours, repeated, 401);
			}),
			await record('The least refusal', calls, async () => {
				await callOneByOne(bench, refused.least, repeated, 401);
			}),
		];
		const collector = await Collector.open();
		try {
			const size = options.quick ? 20 : BATCH;
			const latencies = latenciesOf(size);
			const { id } = await bench.stage.client.createWorkflow(oursFor(bench, collector, latencies));
			await measureRun(bench, collector, id, size);
			profiles.push(
				await record(`A task of a batch of ${size}`, size, async () => {
					await measureRun(bench, collector, id, size);
				}),
			);
		} finally {
			collector.close();
		}
		return profiles;
	});
}

async function recordWhile(
	{ stage }: Bench,
	file: string,
	what: string,
	units: number,
	work: () => Promise<unknown>,
): Promise<{ profile: Profile; functions: string[] }> {
	rmSync(file, { force: true });
	process.kill(stage.n8n.pid, 'SIGUSR2');
	await work();
	process.kill(stage.n8n.pid, 'SIGUSR2');
	while (!existsSync(file)) await sleep(100);
	return digest(JSON.parse(readFileSync(file, 'utf8')) as Profiler.Profile, what, units);
}

/** Adds the samples up, by where the running function lives. */
function digest(
	{ nodes, samples = [], timeDeltas = [] }: Profiler.Profile,
	what: string,
	units: number,
): { profile: Profile; functions: string[] } {
	const byId = new Map(nodes.map((node) => [node.id, node]));
	const parents = new Map(nodes.flatMap(({ id, children = [] }) => children.map((to) => [to, id])));
	const ancestry = (id: number): Profiler.ProfileNode[] => {
		const line: Profiler.ProfileNode[] = [];
		for (let at: number | undefined = id; at !== undefined; at = parents.get(at)) {
			const node = byId.get(at);
			if (node) line.push(node);
		}
		return line;
	};
	const placeOf = (id: number): string | undefined => {
		const line = ancestry(id);
		const { functionName: name, url: script } = line[0]?.callFrame ?? {};
		// The recording itself is not n8n's work.
		if (name === '(idle)' || script === 'node:inspector') return undefined;
		if (name === '(garbage collector)') return 'garbage collection';
		// A function of the engine's own has no script: it works for whoever called it.
		const url = line.find(({ callFrame }) => callFrame.url !== '')?.callFrame.url;
		const place = PLACES.find(([pattern]) => url !== undefined && pattern.test(url))?.[1];
		const isBelow = line.some(({ callFrame }) => PLACES[0]?.[0].test(callFrame.url));
		if (place !== OURS && isBelow) return BELOW_OURS;
		return place ?? 'Node.js';
	};
	const places = new Map<string, number>();
	const functions = new Map<string, number>();
	const known = new Map<number, string | undefined>();
	for (const [index, id] of samples.entries()) {
		if (!known.has(id)) known.set(id, placeOf(id));
		const place = known.get(id);
		if (place === undefined) continue;
		const ms = (timeDeltas[index] ?? 0) / 1000;
		places.set(place, (places.get(place) ?? 0) + ms);
		const { functionName, url, lineNumber } = byId.get(id)?.callFrame ?? {
			functionName: '?',
			url: '',
			lineNumber: 0,
		};
		const label = `${functionName || '(anonymous)'} ${url.split('node_modules/').at(-1)}:${lineNumber + 1}`;
		functions.set(label, (functions.get(label) ?? 0) + ms);
	}
	const total = sum([...places.values()]);
	const ordered = (map: Map<string, number>) => [...map].sort(([, a], [, b]) => b - a);
	return {
		profile: {
			what,
			msEach: total / units,
			shares: ordered(places).map(([where, ms]) => ({ where, percent: (100 * ms) / total })),
		},
		functions: ordered(functions)
			.slice(0, SHOWN_FUNCTIONS)
			.map(([label, ms]) => `${((100 * ms) / total).toFixed(1).padStart(5)} %  ${label}`),
	};
}
