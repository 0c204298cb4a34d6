import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

import { Cluster } from '../../e2e/cluster';
import { inARow, node } from '../../e2e/stage';
import { N8nClient } from '../../n8n/client';
import { installN8n } from '../../n8n/install';
import { startN8n } from '../../n8n/process';
import type { BenchOptions } from '../options';
import { type Row, rowsOf } from '../results';

const SIZES = [10_000, 1_000_000];
const QUICK_SIZES = [1_000, 20_000];

type Engine = 'SQLite' | 'PostgreSQL';

/** What one statement, or one after the other, did while callbacks came. */
interface Statement {
	seconds: number;
	/** Of the callbacks meanwhile. */
	longestWaitMs: number;
	callbacks: number;
	/** Those that the database refused because it was locked for longer than n8n waits. */
	failed: number;
}

/** What `measure.mjs` prints for one size. */
interface Measured {
	size: number;
	bytesEach: number;
	/** A task's first callback. */
	first: Calls;
	/** Its second one. */
	again: Calls;
	/** The clean-up as one statement. */
	atOnce: Statement;
	/** The clean-up as the guide has it. */
	cleanUp: Statement;
	vacuum: Statement;
}

interface Calls {
	ms: number;
	lateMs: number;
	cpuMs: number;
}

/**
 * The trigger's ledger of a big account, in n8n's two databases: what a task costs there, and what clearing old rows
 * does to the callbacks that come meanwhile. n8n itself sets the database up and is stopped then.
 */
export async function measureLedger(
	{ quick, rows: most }: BenchOptions,
	log: (line: string) => void,
): Promise<Row[]> {
	const sizes = quick ? QUICK_SIZES : [...SIZES.filter((size) => size < most), most];
	const rows: Row[] = [];
	for (const engine of ['SQLite', 'PostgreSQL'] as const) {
		for (const measured of await measure(engine, sizes, log)) {
			rows.push(...tableOf(engine, measured));
		}
	}
	return rows;
}

async function measure(
	engine: Engine,
	sizes: number[],
	log: (line: string) => void,
): Promise<Measured[]> {
	const userFolder = mkdtempSync(join(tmpdir(), 'media-generation-ledger-'));
	const server = engine === 'PostgreSQL' ? await Cluster.prepare() : undefined;
	try {
		const install = await installN8n({ log });
		const workflowId = await setUp(userFolder, server?.databaseEnv ?? {});
		const input = {
			database: {
				engine,
				file: join(userFolder, '.n8n', 'database.sqlite'),
				modules: install.n8nScript,
				host: server?.env.DB_POSTGRESDB_HOST,
				port: server?.env.DB_POSTGRESDB_PORT,
				name: server?.env.DB_POSTGRESDB_DATABASE,
			},
			workflowId,
			nodeId: crypto.randomUUID(),
			sizes,
			statements: statementsFor(engine),
		};
		const script = join(__dirname, 'measure.mjs');
		const child = spawn(install.nodeBinary, [script, JSON.stringify(input)], {
			stdio: ['ignore', 'pipe', 'pipe'],
		});
		createInterface(child.stderr).on('line', (line) => log(`${engine}: ${line}`));
		const measured: Measured[] = [];
		for await (const line of createInterface(child.stdout)) {
			log(`${engine}: ${line}`);
			measured.push(JSON.parse(line) as Measured);
		}
		if (measured.length !== sizes.length) throw new Error(`${engine} could not be measured.`);
		return measured;
	} finally {
		await server?.close();
		rmSync(userFolder, { recursive: true, force: true });
	}
}

/** Has n8n make its tables, and a workflow, which each row belongs to. */
async function setUp(userFolder: string, env: Record<string, string>): Promise<string> {
	const n8n = await startN8n({ userFolder, env });
	try {
		const client = new N8nClient(n8n.url);
		await client.setUp();
		const trigger = node('n8n-nodes-base.manualTrigger', 'Start', {});
		return (await client.createWorkflow({ name: 'Ledger', ...inARow(trigger) })).id;
	} finally {
		await n8n.stop();
	}
}

/** The statements of the guide: what is measured is what people run. */
function statementsFor(engine: Engine): { atOnce: string; cleanUp: string } {
	const guide = readFileSync(join(__dirname, '../../../docs/modes.md'), 'utf8');
	const statement = (age: string) => {
		const found = new RegExp(`DELETE FROM processed_data [^;]*${age}[^;]*;`).exec(guide)?.[0];
		if (found === undefined) throw new Error(`The guide has no statement for ${engine}.`);
		return found;
	};
	if (engine === 'PostgreSQL') {
		const atOnce = statement("interval '30 days'");
		return { atOnce, cleanUp: atOnce };
	}
	return {
		atOnce:
			"DELETE FROM processed_data WHERE context LIKE 'n:%:%' AND createdAt < datetime('now', '-30 days');",
		cleanUp: statement("'-30 days'"),
	};
}

function tableOf(engine: Engine, measured: Measured): Row[] {
	const { size, bytesEach, first, again, atOnce, cleanUp, vacuum } = measured;
	const part = `ledger-${engine.toLowerCase()}-${size}`;
	const row = rowsOf(part, `${engine}, ${size.toLocaleString('en')} tasks`);
	const during = (id: string, what: string, work: Statement): Row[] => [
		row(`${id}-time`, what, 's', work.seconds),
		row(`${id}-wait`, `${what}, longest wait of a callback`, 'ms', work.longestWaitMs),
		row(
			`${id}-failed`,
			`${what}, callbacks that failed`,
			'%',
			(100 * work.failed) / work.callbacks,
		),
	];
	return [
		row('bytes', 'a row with its index', 'bytes', bytesEach),
		row('first', 'first callback', 'ms', first.ms),
		row('first-late', 'first callback, one in a hundred takes more than', 'ms', first.lateMs),
		row('first-cpu', 'first callback, CPU', 'ms', first.cpuMs),
		row('again', 'second callback', 'ms', again.ms),
		row('again-cpu', 'second callback, CPU', 'ms', again.cpuMs),
		...(engine === 'SQLite' ? during('at-once', 'a quarter cleared by one statement', atOnce) : []),
		...during('clean-up', 'a quarter cleared', cleanUp),
		...during('vacuum', 'VACUUM after it', vacuum),
	];
}
