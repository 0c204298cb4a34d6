import { Readable } from 'node:stream';

import { type Answer, answerOfRefusal } from '../../service/model';
import type { Refusal } from '../../service/settings';
import { SECOND } from '../../durations';
import { BLIPS, mayCover, REFUSALS, type RequestTrouble } from '../troubles';
import { BASE_URL, itemOf } from './service';
import { N8N_URL } from '../../workflow/host';
import type { Process } from '../../workflow/n8n/process';
import type { Activity } from '../../workflow/n8n/time';
import type { World } from './world';

/** A request as the service saw it. */
export interface SeenRequest {
	at: number;
	by: string;
	kind: 'create' | 'read' | 'download';
	taskId?: string | undefined;
	item?: string;
	status: number;
	hasKey: boolean;
	host: string;
	/** How long the answer asked to wait, milliseconds. */
	retryAfterMs?: number | undefined;
	/** When the answer reached the node, if it did. */
	answeredAt?: number;
	told?: Told;
	/** Whether nothing of it has left n8n. */
	isUnsent?: boolean;
	/** Where the answer says that the result is. */
	location?: string | undefined;
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

type Response = Record<'statusCode' | 'headers' | 'body', unknown>;

const failure = (message: string, code: string, syscall: string): Error =>
	Object.assign(new Error(message), { code, syscall });

const refused = () => failure('connect ECONNREFUSED', 'ECONNREFUSED', 'connect');
const hungUp = () => failure('socket hang up', 'ECONNRESET', 'read');
const brokenOff = () =>
	failure(
		'Client network socket disconnected before secure TLS connection was established',
		'ECONNRESET',
		'connect',
	);
const noRoute = () => failure('read EHOSTUNREACH', 'EHOSTUNREACH', 'read');

/** What a request meets that does not arrive. */
const BROKEN: Partial<Record<RequestTrouble, () => Error>> = {
	'connection refused': refused,
	'request lost': hungUp,
	'TLS handshake broken off': brokenOff,
};

const addressOf = ({ taskId }: SeenRequest) => `${BASE_URL}/api/tasks/${taskId}`;

const refusals = new Map<RequestTrouble, Refusal>([...REFUSALS, ...BLIPS]);

/** Between two bytes of an answer that trickles. */
const TRICKLE_MS = 5_000;

/** What comes of a file in a second: a little more than what the node gives up for. */
const PIECE_BYTES = 1_200;

/** Who was told an answer, and in which event. */
export interface Told {
	process: Process | undefined;
	event: number;
}

/** Who has sent a request, and what has it go on after so many milliseconds, if its process still lives. */
interface Requester {
	activity: Activity;
	end: (delay: number, what: Error | (() => Response)) => void;
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
		const isCreate = options.method === 'POST' && options.url.startsWith(BASE_URL);
		const { process } = activity;
		if (process && !process.effect(isCreate)) return await new Promise(() => undefined);
		return await new Promise<Response>((resolve, reject) => {
			let isOver = false;
			const end: Requester['end'] = (delay, what) => {
				const run = () => {
					if (isOver) return;
					isOver = true;
					if (what instanceof Error) reject(what);
					else resolve(what());
				};
				time.schedule(delay, run, activity);
			};
			const { abortSignal, timeout, body } = options;
			const abort = () => end(0, failure('canceled', 'ERR_CANCELED', ''));
			if (abortSignal?.aborted) return abort();
			abortSignal?.addEventListener('abort', abort);
			if (timeout) end(timeout, failure('timeout exceeded', 'ECONNABORTED', 'read'));
			const url = new URL(options.url);
			const sent = { ...options, body: typeof body === 'string' ? JSON.parse(body) : body };
			const carry = url.origin === N8N_URL ? this.carryToN8n : this.carry;
			carry.call(this, url, sent, { activity, end });
		});
	}

	private carryToN8n(url: URL, { body, headers }: Request, { activity, end }: Requester): void {
		const answer = (statusCode: number, said: unknown) => {
			const text = JSON.stringify(said);
			this.world.trace(`n8n: answers the request of ${activity.name} with ${statusCode} ${text}`);
			end(1, () => ({ statusCode, headers: { 'content-type': 'application/json' }, body: text }));
		};
		this.world.n8n.webhooks.receive(url, body, answer, headers);
	}

	/** Brings a request where it goes to, and its answer back. */
	private carry(url: URL, options: Request, { activity, end }: Requester): void {
		const { time, random, history } = this.world;
		const seen = this.note(url, options, activity.name);
		const { kind } = seen;
		const nth = this.counts[kind]++;
		const trouble = this.singleTrouble(kind, nth) ?? this.lastingTrouble(kind, nth);
		if (trouble) this.world.note(trouble);
		const there = random.between(1, history.service.slowestAnswerMs / 2, 'there', kind, nth);
		const back = random.between(1, history.service.slowestAnswerMs / 2, 'back', kind, nth);
		const breaks = trouble && BROKEN[trouble];
		if (breaks) {
			this.world.trace(`${activity.name}: ${kind} not sent (${trouble})`);
			seen.isUnsent = trouble !== 'request lost';
			return end(trouble === 'request lost' ? there + back : there, breaks());
		}
		time.later(there, () => {
			const answer = this.answer(options, seen, trouble);
			seen.status = answer.status;
			seen.retryAfterMs ??= Number(answer.headers['retry-after']) * 1000 || undefined;
			seen.location = answer.headers.location;
			if (answer.fate === 'lost' || trouble === 'answer lost') return end(back, hungUp());
			if (trouble === 'no route, after it was sent') return end(back, noRoute());
			if (trouble === 'answer trickles') {
				const { status: statusCode, headers, body } = answer;
				return end(back, () => ({ statusCode, headers, body: this.trickling(body, activity) }));
			}
			end(back + (trouble === 'answer late' ? 45_000 : 0), () => {
				seen.answeredAt = time.now;
				seen.told = { process: activity.process, event: time.count };
				const task = kind === 'create' ? this.world.service.taskIn(answer.body) : undefined;
				if (task) task.toldTo = seen.told;
				const { status, headers, type, body } = answer;
				return {
					statusCode: status,
					headers: { 'content-type': type, ...headers },
					body: kind === 'download' ? this.file(body, activity) : body,
				};
			});
		});
	}

	/** A file that takes as long as the history says, in pieces of a second. */
	private file(body: string, activity: Activity): Readable {
		const { fileSeconds } = this.world.history;
		if (fileSeconds <= 1) return Readable.from([Buffer.from(body)]);
		const stream = new Readable({ read: () => undefined });
		const next = (left: number) => {
			if (stream.destroyed) return;
			stream.push(left > 0 ? Buffer.alloc(PIECE_BYTES, body) : null);
			if (left > 0) this.world.time.schedule(SECOND, () => next(left - 1), activity);
		};
		next(fileSeconds);
		return stream;
	}

	private trickling(body: string, activity: Activity): Readable {
		const stream = new Readable({ read: () => undefined });
		const next = (rest: Buffer) => {
			if (stream.destroyed) return;
			stream.push(rest.length > 0 ? rest.subarray(0, 1) : null);
			if (rest.length > 0) {
				this.world.time.schedule(TRICKLE_MS, () => next(rest.subarray(1)), activity);
			}
		};
		next(Buffer.from(body));
		return stream;
	}

	/** The trouble that lasts at present. */
	private lastingTrouble(kind: SeenRequest['kind'], nth: number): RequestTrouble | undefined {
		const { now } = this.world.time;
		const [trouble] = this.world.history.trouble;
		if (!trouble || now < trouble.at || now >= trouble.at + trouble.forMs) return undefined;
		const { what, on } = trouble;
		switch (what) {
			case 'database away':
				return undefined;
			case 'service away':
				return kind === 'download' ? undefined : 'connection refused';
			case 'media host away':
				return kind === 'download' ? 'connection refused' : undefined;
			case 'each fifth read fails':
				return kind === 'read' && nth % 5 === 4 ? '502' : undefined;
			case 'reads refused but for one a second': {
				const isSoon = (seen: SeenRequest) => seen.kind === 'read' && seen.at > now - SECOND;
				const isTooMany = kind === 'read' && this.seen.filter(isSoon).length > 1;
				return isTooMany ? '429 with Retry-After' : undefined;
			}
			default:
				return kind === 'download' || (on === 'creates' && kind !== 'create') ? undefined : what;
		}
	}

	private singleTrouble(kind: SeenRequest['kind'], nth: number): RequestTrouble | undefined {
		if (!this.world.isTroubled) return undefined;
		const found = this.world.history.requests.find((each) => each.on === kind && each.nth === nth);
		return found?.what === '303' && kind !== 'create' ? undefined : found?.what;
	}

	private note(url: URL, { method, body, headers }: Request, by: string): SeenRequest {
		const post = method === 'POST' ? 'create' : 'read';
		const kind = url.origin === BASE_URL ? post : 'download';
		const seen: SeenRequest = {
			...{ at: this.world.time.now, by, kind, host: url.host, status: 0 },
			hasKey: 'Authorization' in (headers ?? {}),
			...(kind === 'read' && { taskId: decodeURIComponent(url.pathname.split('/').pop() ?? '') }),
			...(kind === 'create' && { item: itemOf(body) }),
		};
		this.seen.push(seen);
		return seen;
	}

	/** What the service, or the media host, answers, as far as the network lets it through. */
	private answer(options: Request, seen: SeenRequest, trouble: RequestTrouble | undefined): Answer {
		const { world } = this;
		const { kind, by } = seen;
		if (!trouble) return world.service.answer(options, seen);
		const refusal = refusals.get(trouble);
		if (refusal) {
			// An answer that blames the server, or comes from elsewhere, says nothing of what the server has done.
			const isCovering = mayCover(trouble, refusal.status, refusal.retryAfter !== undefined);
			if (isCovering && this.seen.length % 2 === 0) world.service.answer(options, seen);
			world.trace(`service: answers ${by} ${refusal.status} to a ${kind} (${trouble})`);
			const asks = kind === 'create' && refusal.retryAfter;
			if (asks) seen.retryAfterMs = Number(asks) * 1000;
			return answerOfRefusal(refusal, world.time.now);
		}
		const answer = world.service.answer(options, seen);
		if (trouble === 'sent twice by the network') this.repeat(options, seen);
		world.trace(`network: the ${kind} of ${by}: ${trouble}`);
		// A refusal stays what it is.
		if (answer.status !== 200) return answer;
		switch (trouble) {
			case '303':
				return { ...answer, status: 303, headers: { location: addressOf(seen) }, body: '' };
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

	/** Something between n8n and the service sends a request a second time; the answer goes nowhere. */
	private repeat(options: Request, seen: SeenRequest): void {
		const { service } = this.world;
		const before = service.tasks.length;
		service.answer(options, { ...seen });
		for (const task of service.tasks.slice(before)) task.isTwin = true;
	}
}
