import { Readable } from 'node:stream';

import { type Answer, answerOfRefusal } from '../../service/model';
import type { Refusal } from '../../service/settings';
import type { RequestTrouble } from '../history';
import { BASE_URL, type Call, itemOf } from './service';
import type { Activity } from './time';
import type { World } from './world';

const N8N_URL = 'https://n8n.test';

/** A request as the service saw it. */
export interface SeenRequest {
	at: number;
	by: string;
	kind: 'create' | 'read' | 'download';
	taskId: string | undefined;
	item: string | undefined;
	status: number;
	hasKey: boolean;
	host: string;
	/** How long the answer asked to wait, milliseconds. */
	retryAfterMs: number | undefined;
	/** When the answer reached the node, if it did. */
	answeredAt: number | undefined;
}

/** What n8n's request helper is given, as far as it counts here. */
export interface Request {
	url: string;
	method?: string;
	headers?: Record<string, unknown>;
	body?: unknown;
	timeout?: number;
	abortSignal?: AbortSignal;
}

interface Response {
	statusCode: number;
	headers: Record<string, string>;
	body: unknown;
}

const responseOf = ({ status, headers, type, body }: Answer): Response => ({
	statusCode: status,
	headers: { 'content-type': type, ...headers },
	body,
});

const failure = (message: string, code: string, syscall: string): Error =>
	Object.assign(new Error(message), { code, syscall });

const refused = () => failure('connect ECONNREFUSED', 'ECONNREFUSED', 'connect');
const hungUp = () => failure('socket hang up', 'ECONNRESET', 'read');
const noRoute = () => failure('read EHOSTUNREACH', 'EHOSTUNREACH', 'read');

const AN_EMPTY_PAGE = '<html><h1>Forbidden</h1></html>';

/** Troubles that are answers of the service, or of what stands before it. */
const REFUSALS: Partial<Record<RequestTrouble, Refusal>> = {
	'429': { status: 429 },
	'429 with Retry-After': { status: 429, retryAfter: 7 },
	'503': { status: 503 },
	'503 with Retry-After': { status: 503, retryAfter: 7 },
	'500': { status: 500 },
	"a firewall's 403": { status: 403, body: AN_EMPTY_PAGE, contentType: 'text/html' },
	'404': { status: 404 },
	'401': { status: 401 },
};

const IN_WORDS: Partial<Record<RequestTrouble, string>> = {
	'answer lost': 'its answer is lost',
	'answer late': 'its answer comes 45 s late',
	'answer garbled': 'its answer is a web page',
	'answer cut short': 'half of its answer is missing',
	'answer without an id': 'its answer says nothing of a task',
	'sent twice by the network': 'it reaches the service twice',
};

/** How a requester learns of the end of its request. */
interface Requester {
	activity: Activity;
	/** The requester goes on, if its process still lives. */
	goOn(delay: number, run: () => void): void;
	resolve(response: Response): void;
	fail(delay: number, error: Error): void;
}

/** The network between n8n, the service and its media: it carries requests and answers, with the history's troubles. */
export class Network {
	readonly seen: SeenRequest[] = [];

	private readonly counts = { create: 0, read: 0, download: 0 };

	constructor(private readonly world: World) {}

	/** In place of n8n's outbound HTTP. */
	async request(options: Request): Promise<unknown> {
		const { time } = this.world;
		const { activity } = time;
		if (activity.process && !activity.process.effect()) return await new Promise(() => undefined);
		return await new Promise<Response>((resolve, reject) => {
			let isOver = false;
			const goOn = (delay: number, run: () => void) => {
				time.schedule(
					delay,
					() => {
						if (isOver) return;
						isOver = true;
						run();
					},
					activity,
				);
			};
			const fail = (delay: number, error: Error) => goOn(delay, () => reject(error));
			const abort = () => fail(0, failure('canceled', 'ERR_CANCELED', ''));
			if (options.abortSignal?.aborted) return abort();
			options.abortSignal?.addEventListener('abort', abort);
			if (options.timeout) {
				fail(options.timeout, failure('timeout exceeded', 'ECONNABORTED', 'read'));
			}
			const url = new URL(options.url);
			const requester = { activity, goOn, resolve, fail };
			const { body } = options;
			const sent = { ...options, body: typeof body === 'string' ? JSON.parse(body) : body };
			if (url.origin === N8N_URL) this.carryToN8n(url, sent, requester);
			else this.carry(url, sent, requester);
		});
	}

	private carryToN8n(url: URL, options: Request, { activity, goOn, resolve }: Requester): void {
		const answer = (statusCode: number, said: unknown) => {
			const body = JSON.stringify(said);
			this.world.trace(`n8n: answers the request of ${activity.name} with ${statusCode} ${body}`);
			goOn(1, () => resolve({ statusCode, headers: { 'content-type': 'application/json' }, body }));
		};
		this.world.n8n.webhooks.receive(url, options.body, answer, options.headers);
	}

	/** Brings a request where it goes to, and its answer back. */
	private carry(url: URL, options: Request, requester: Requester): void {
		const { time, random, history } = this.world;
		const { activity, goOn, fail, resolve } = requester;
		const seen = this.note(url, options, activity.name);
		const { kind } = seen;
		const nth = this.counts[kind]++;
		const trouble = this.world.isTroubled
			? history.requests.find((entry) => entry.on === kind && entry.nth === nth)?.what
			: undefined;
		if (trouble) this.world.note(trouble);
		const there = random.between(1, history.service.slowestAnswerMs / 2, 'there', kind, nth);
		const back = random.between(1, history.service.slowestAnswerMs / 2, 'back', kind, nth);
		if (trouble === 'connection refused' || trouble === 'request lost') {
			this.world.trace(`${activity.name}: ${kind} not sent (${trouble})`);
			return trouble === 'request lost' ? fail(there + back, hungUp()) : fail(there, refused());
		}
		time.later(there, () => {
			const answer = this.answer(options, seen, trouble);
			seen.status = answer.status;
			seen.retryAfterMs = Number(answer.headers['retry-after']) * 1000 || undefined;
			if (answer.fate === 'dropped' || trouble === 'answer lost') return fail(back, hungUp());
			if (trouble === 'no route, after it was sent') return fail(back, noRoute());
			goOn(back + (trouble === 'answer late' ? 45_000 : 0), () => {
				seen.answeredAt = time.now;
				const task = this.world.service.tasks.find(
					({ id }) => kind === 'create' && answer.body.includes(`"${id}"`),
				);
				if (task) task.toldTo = { process: activity.process, event: time.count };
				const body = Readable.from([Buffer.from(answer.body)]);
				resolve({ ...responseOf(answer), ...(kind === 'download' && { body }) });
			});
		});
	}

	private note(url: URL, { method, body, headers }: Request, by: string): SeenRequest {
		const post = method === 'POST' ? 'create' : 'read';
		const kind = url.origin === BASE_URL ? post : 'download';
		const seen: SeenRequest = {
			at: this.world.time.now,
			by,
			kind,
			taskId: kind === 'read' ? decodeURIComponent(url.pathname.split('/').pop() ?? '') : undefined,
			item: kind === 'create' ? itemOf(body) : undefined,
			status: 0,
			hasKey: 'Authorization' in (headers ?? {}),
			host: url.host,
			retryAfterMs: undefined,
			answeredAt: undefined,
		};
		this.seen.push(seen);
		return seen;
	}

	/** What the service, or the media host, answers, as far as the network lets it through. */
	private answer(options: Request, seen: SeenRequest, trouble: RequestTrouble | undefined): Answer {
		const { world } = this;
		const { kind, by } = seen;
		const refusal = trouble && REFUSALS[trouble];
		if (trouble && refusal) {
			// An answer that blames the server says nothing of what it has done.
			if (refusal.status >= 500 && !refusal.retryAfter && this.seen.length % 2 === 0) {
				this.reach(options, seen);
			}
			world.trace(`service: answers ${by} ${refusal.status} to a ${kind} (${trouble})`);
			return answerOfRefusal(refusal);
		}
		const answer = this.reach(options, seen);
		if (trouble === 'sent twice by the network') this.repeat(options, seen);
		if (trouble) {
			world.trace(`network: the ${kind} of ${by}: ${IN_WORDS[trouble] ?? trouble}`);
		}
		// A refusal stays what it is.
		if (answer.status !== 200) return answer;
		switch (trouble) {
			case 'answer garbled':
				return { ...answer, body: '<html><body>Please sign in</body></html>' };
			case 'answer cut short':
				return { ...answer, body: answer.body.slice(0, 8) };
			case 'answer without an id':
				return { ...answer, body: kind === 'create' ? '{"accepted":true}' : '{}' };
			default:
				return answer;
		}
	}

	private reach({ url, headers, body }: Request, seen: SeenRequest): Answer {
		const { kind, taskId, by } = seen;
		if (kind === 'download') return this.world.service.file(url);
		const call: Call = { kind, authorization: headers?.Authorization, body, taskId };
		const { service } = this.world;
		const before = service.tasks.length;
		const answer = service.answer(call, by);
		if (kind === 'create') seen.taskId = service.tasks[before]?.id;
		return answer;
	}

	/** Something between n8n and the service sends a request a second time; the answer goes nowhere. */
	private repeat(options: Request, seen: SeenRequest): void {
		const { tasks } = this.world.service;
		const before = tasks.length;
		this.reach(options, { ...seen });
		for (const task of tasks.slice(before)) task.isTwin = true;
	}
}
