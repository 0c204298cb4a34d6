import { readFileSync, rmSync, truncateSync } from 'node:fs';
import { get, type IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import { isDeepStrictEqual } from 'node:util';

import { listen } from '../listen';
import { packPackage } from '../n8n/package';
import { type N8nProcess, startN8n, tailOf } from '../n8n/process';
import { LEAN, NO_RUNNER, shortMinute } from '../n8n/settings';
import { makeUserFolder } from '../n8n/userFolder';

type Env = Record<string, string>;

const ORDINARY: Env = {
	...NO_RUNNER,
	...shortMinute(),
	// n8n's own default since 2.0.
	N8N_DEFAULT_BINARY_DATA_MODE: 'filesystem',
};

/** The environments of which an n8n is lent. */
const LENT = [ORDINARY, { ...ORDINARY, ...LEAN }];

/** The environment variable with the address of a lender, for this process and those that it starts. */
export const LENDER = 'N8N_LENDER';

interface Place {
	n8n: N8nProcess;
	/** Of the package in it. */
	hash: string;
	env: Env;
	isRunning: boolean;
}

/** What a lender can be asked for; all but the first two name the port of an n8n that was lent. */
type Deed = 'greet' | 'lend' | 'kill' | 'stop' | 'start' | 'giveBack';

/**
 * Starts n8n for test files that need no other environment, and lends it to one file at a time: the next one gets what
 * the one before gave back, which is free of its workflows by then.
 */
export class Lender {
	private readonly places = new Map<number, Place>();

	private readonly free: Place[] = [];

	/** @returns how to end it, with all that it has started */
	static async open(onUse: () => void = () => {}): Promise<() => Promise<void>> {
		const lender = new Lender();
		const server = await listen((request, response) => {
			onUse();
			void lender.answer(new URL(request.url ?? '', 'http://lender')).then(
				(answer) => response.end(JSON.stringify(answer ?? null)),
				(error: unknown) => response.writeHead(500).end(String(error)),
			);
		});
		process.env[LENDER] = server.url;
		return async () => {
			await server.close();
			await Promise.all([...lender.places.values()].map(async (place) => await lender.end(place)));
		};
	}

	private async answer({ pathname, searchParams }: URL): Promise<unknown> {
		const deed = pathname.slice(1) as Deed;
		if (deed === 'greet') return 'hello';
		const env = JSON.parse(searchParams.get('env') ?? '{}') as Env;
		if (deed === 'lend') return (await this.lend(env)).n8n;
		const place = this.places.get(Number(searchParams.get('port')));
		if (place === undefined) throw new Error('Nothing is lent at this port.');
		const { n8n, isRunning } = place;
		if (deed === 'giveBack') {
			const isAsItWas = LENT.some((lent) => isDeepStrictEqual(place.env, lent));
			return isRunning && isAsItWas ? void this.free.push(place) : await this.end(place);
		}
		place.isRunning = false;
		if (deed !== 'start') return await n8n[deed]();
		place.env = env;
		place.n8n = await startN8n({ userFolder: n8n.userFolder, env, port: n8n.port });
		place.isRunning = true;
		return place.n8n;
	}

	private async lend(env: Env): Promise<Place> {
		const { hash } = await packPackage();
		const index = this.free.findIndex((place) => isDeepStrictEqual(place.env, env));
		const [place] = index < 0 ? [] : this.free.splice(index, 1);
		if (place?.hash === hash) {
			truncateSync(place.n8n.logFile);
			return place;
		}
		// The package has been changed since.
		if (place) await this.end(place);
		const n8n = await startN8n({ userFolder: await makeUserFolder(), env });
		const made = { n8n, hash, env, isRunning: true };
		this.places.set(n8n.port, made);
		return made;
	}

	private async end({ n8n }: Place): Promise<void> {
		this.places.delete(n8n.port);
		await n8n.kill();
		rmSync(n8n.userFolder, { recursive: true, force: true });
	}
}

/** An n8n that this process has borrowed. */
export type BorrowedN8n = NonNullable<Awaited<ReturnType<typeof borrowN8n>>>;

/**
 * @param asked what its environment is to have, beside what it has anyway
 * @returns undefined where nobody lends such an n8n
 */
export async function borrowN8n(asked: Env) {
	const env = LENT.find((lent) =>
		Object.entries(asked).every(([name, value]) => lent[name] === value),
	);
	if (env === undefined || process.env[LENDER] === undefined) return undefined;
	const borrowed = processOf(await ask('lend', { env: JSON.stringify(env) }));
	const port = String(borrowed.port);
	return {
		process: borrowed,
		env,
		/** Starts it again, once it was stopped or killed. */
		start: async (changed: Env) =>
			processOf(await ask('start', { port, env: JSON.stringify(changed) })),
		/** Whoever borrows it next is to find nothing of this one. */
		giveBack: async () => await ask('giveBack', { port }),
	};
}

/** @param told what goes over the wire of a process */
function processOf(told: unknown): N8nProcess {
	const n8n = told as N8nProcess;
	const port = String(n8n.port);
	return {
		...n8n,
		exited: new Promise(() => undefined),
		logTail: () => tailOf(readFileSync(n8n.logFile)),
		stop: async () => void (await ask('stop', { port })),
		kill: async () => void (await ask('kill', { port })),
	};
}

/**
 * It waits as long as it takes to start n8n, which `fetch` does not. On a connection of its own: the lender may be closing
 * an idle connection just when the next question goes out on it.
 */
async function ask(deed: Deed, parameters: Record<string, string> = {}): Promise<unknown> {
	const address = `${process.env[LENDER]}/${deed}?${new URLSearchParams(parameters).toString()}`;
	const response = await new Promise<IncomingMessage>((resolve, reject) => {
		get(address, { agent: false }, resolve).on('error', reject);
	});
	const answer = await text(response);
	if (response.statusCode !== 200) throw new Error(answer);
	return JSON.parse(answer);
}

/** @throws where there is no lender at the address in the environment */
export const greetLender = async () => await ask('greet');
