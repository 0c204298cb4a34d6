import { readFileSync, rmSync, truncateSync } from 'node:fs';
import { get, type IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import { isDeepStrictEqual } from 'node:util';

import { listen } from '../listen';
import { packPackage } from '../n8n/package';
import { type N8nProcess, startN8n } from '../n8n/process';
import { LEAN, NO_RUNNER, shortMinute } from '../n8n/settings';
import { makeUserFolder } from '../n8n/userFolder';

const ORDINARY: Record<string, string> = {
	...NO_RUNNER,
	...shortMinute(),
	// n8n's own default since 2.0.
	N8N_DEFAULT_BINARY_DATA_MODE: 'filesystem',
};

/** The environments of which an n8n is lent. */
const LENT = [ORDINARY, { ...ORDINARY, ...LEAN }];

/** @returns the environment of an n8n that can be lent to whoever asks for these values; undefined where none can */
export const lentWith = (asked: Record<string, string>) =>
	LENT.find((env) => Object.entries(asked).every(([name, value]) => env[name] === value));

/** The environment variable with the address of a lender, for this process and those that it starts. */
export const LENDER = 'N8N_LENDER';

/** What a borrower is told of an n8n. */
type Lent = Pick<
	N8nProcess,
	'url' | 'port' | 'pid' | 'install' | 'userFolder' | 'logFile' | 'startedInMs'
>;

interface Place {
	n8n: N8nProcess;
	/** Of the package in it. */
	hash: string;
	env: Record<string, string>;
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

	/**
	 * @param onUse called at each request
	 * @returns how to end it, with all that it has started
	 */
	static async open(onUse: () => void = () => {}): Promise<() => Promise<void>> {
		const lender = new Lender();
		const server = await listen((request, response) => {
			onUse();
			void lender.answer(request).then(
				(answer) => response.end(JSON.stringify(answer ?? null)),
				(error: unknown) => {
					response.statusCode = 500;
					response.end(error instanceof Error ? error.message : String(error));
				},
			);
		});
		process.env[LENDER] = server.url;
		return async () => {
			await server.close();
			await Promise.all([...lender.places.values()].map(async (place) => await lender.end(place)));
		};
	}

	private constructor() {}

	private async answer(request: IncomingMessage): Promise<unknown> {
		const { pathname, searchParams } = new URL(request.url ?? '', 'http://lender');
		const deed = pathname.slice(1) as Deed;
		if (deed === 'greet') return 'hello';
		const env = JSON.parse(searchParams.get('env') ?? '{}') as Record<string, string>;
		if (deed === 'lend') return lentOf(await this.lend(env));
		const place = this.places.get(Number(searchParams.get('port')));
		if (place === undefined) throw new Error('Nothing is lent at this port.');
		switch (deed) {
			case 'start':
				place.env = env;
				place.n8n = await this.start(place.n8n.userFolder, place.env, place.n8n.port);
				place.isRunning = true;
				return lentOf(place);
			case 'giveBack':
				if (place.isRunning && LENT.some((env) => isDeepStrictEqual(place.env, env)))
					this.free.push(place);
				else await this.end(place);
				return undefined;
			default:
				place.isRunning = false;
				return await place.n8n[deed]();
		}
	}

	private async lend(env: Record<string, string>): Promise<Place> {
		const { hash } = await packPackage();
		const index = this.free.findIndex((place) => isDeepStrictEqual(place.env, env));
		const [place] = index < 0 ? [] : this.free.splice(index, 1);
		if (place?.hash === hash) {
			truncateSync(place.n8n.logFile);
			return place;
		}
		// The package has been changed since.
		if (place) await this.end(place);
		const n8n = await this.start(await makeUserFolder(), env);
		const made = { n8n, hash, env, isRunning: true };
		this.places.set(n8n.port, made);
		return made;
	}

	private async start(userFolder: string, env: Record<string, string>, port?: number) {
		return await startN8n({ userFolder, env, ...(port !== undefined && { port }) });
	}

	private async end(place: Place): Promise<void> {
		const { n8n } = place;
		this.places.delete(n8n.port);
		await n8n.kill();
		rmSync(n8n.userFolder, { recursive: true, force: true });
	}
}

function lentOf({ n8n }: Place): Lent {
	const { url, port, pid, install, userFolder, logFile, startedInMs } = n8n;
	return { url, port, pid, install, userFolder, logFile, startedInMs };
}

/** An n8n that this process has borrowed. */
export class BorrowedN8n {
	private constructor(private lent: Lent) {}

	/**
	 * @param env one of those that `lentWith` gives
	 * @returns undefined where nobody lends
	 */
	static async borrow(env: Record<string, string>): Promise<BorrowedN8n | undefined> {
		if (process.env[LENDER] === undefined) return undefined;
		return new BorrowedN8n((await ask('lend', { env: JSON.stringify(env) })) as Lent);
	}

	get process(): N8nProcess {
		const { lent } = this;
		return {
			...lent,
			exited: new Promise(() => undefined),
			logTail: () => readFileSync(lent.logFile, 'utf8').trimEnd().split('\n').slice(-25).join('\n'),
			stop: async () => void (await this.ask('stop')),
			kill: async () => void (await this.ask('kill')),
		};
	}

	/** Starts it again, once it was stopped or killed. */
	async start(env: Record<string, string>): Promise<N8nProcess> {
		this.lent = (await this.ask('start', { env: JSON.stringify(env) })) as Lent;
		return this.process;
	}

	/** Whoever borrows it next is to find nothing of this one. */
	async giveBack(): Promise<void> {
		await this.ask('giveBack');
	}

	private async ask(deed: Deed, more: Record<string, string> = {}): Promise<unknown> {
		return await ask(deed, { port: String(this.lent.port), ...more });
	}
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

/** @returns whether there is a lender at the address in the environment */
export async function isLending(): Promise<boolean> {
	return (await ask('greet')) === 'hello';
}
