import { Readable } from 'node:stream';

import type { IDataObject } from 'n8n-workflow';

import type { CallbackTrouble, History, RequestTrouble } from '../history';
import type { Process } from './process';
import type { Activity } from './time';
import type { World } from './world';

export const BASE_URL = 'https://service.test';
const MEDIA_URL = 'https://media.test';
const N8N_URL = 'https://n8n.test';

/** Longer than any history. */
const NEVER_MS = 24 * 3_600_000;

/** A task as the service keeps it. */
export interface ServiceTask {
	id: string;
	/** The ask and the item that it was made for, as the prompt names them. */
	item: string;
	createdAt: number;
	endsAt: number;
	outcome: 'SUCCESS' | 'FAILURE';
	/** How many results it has. */
	results: number;
	callback: CallbackTrouble | undefined;
	webhookUrl: string | undefined;
	input: unknown;
	/** The activity that created it, e.g. `execution 3`. */
	by: string;
	/** Whether the network made two requests of one. */
	isTwin: boolean;
	/** The process that was told its id, and in which event. */
	toldTo: { process: Process | undefined; event: number } | undefined;
}

/** What becomes of a task. */
export interface Script {
	durationMs: number;
	fails: boolean;
	callback: CallbackTrouble | undefined;
	/** How many results it has; one where it is left out. */
	results?: number;
}

/** A request as the service saw it. */
export interface SeenRequest {
	at: number;
	by: string;
	kind: 'create' | 'read' | 'download' | 'callback';
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
	encoding?: string;
	abortSignal?: AbortSignal;
}

interface Response {
	statusCode: number;
	headers: Record<string, string>;
	body: unknown;
}

const json = (
	statusCode: number,
	body: unknown,
	headers: Record<string, string> = {},
): Response => ({
	statusCode,
	headers: { 'content-type': 'application/json', ...headers },
	body: JSON.stringify(body),
});

const failure = (message: string, code: string, syscall: string): Error =>
	Object.assign(new Error(message), { code, syscall });

/** Troubles that never reach the service. */
const NOT_SENT: readonly RequestTrouble[] = ['connection refused', 'request lost'];

/** The model of the service, its network and the senders of its callbacks. */
export class Service {
	readonly tasks: ServiceTask[] = [];

	readonly seen: SeenRequest[] = [];

	key = 'sk-live-first-key-of-this-account';

	/** All keys that there have been, and the tokens of all callback addresses. */
	readonly secrets = new Set<string>([this.key]);

	/** How its callbacks were answered. */
	readonly answered: Array<{ at: number; taskId: string; status: number; said: unknown }> = [];

	/** How forged callbacks were answered. */
	readonly forged: number[] = [];

	maxUnfinished: number;

	maxPerSecond: number;

	/** When the limits moved, or a refusal was made up. */
	readonly limitChanges: number[] = [];

	private readonly ended = new Set<string>();

	/** When the latest of the tasks had ended whose callback was sent. */
	private lastCalledBack = 0;

	private readonly counts = { create: 0, read: 0, download: 0, callback: 0 };

	/** What becomes of an item's nth task, where that is told and not left to the history. */
	script: ((item: string, attempt: number) => Script) | undefined;

	private readonly history: History;

	constructor(private readonly world: World) {
		this.history = world.history;
		this.maxUnfinished = world.history.service.maxUnfinished;
		this.maxPerSecond = world.history.service.maxPerSecond;
	}

	task(id: string): ServiceTask | undefined {
		return this.tasks.find((task) => task.id === id);
	}

	isFinished({ endsAt }: ServiceTask): boolean {
		return this.world.time.now >= endsAt;
	}

	/** All tasks that are under way end in this moment. */
	endAll(): void {
		for (const task of this.tasks) {
			if (this.isFinished(task)) continue;
			task.endsAt = this.world.time.now;
			this.end(task);
		}
	}

	changeKey(): void {
		this.key = `sk-live-key-after-${this.secrets.size}-changes`;
		this.secrets.add(this.key);
	}

	/** In place of n8n's outbound HTTP. */
	async request(options: Request): Promise<unknown> {
		const { time } = this.world;
		const activity = time.activity;
		if (activity.process && !activity.process.effect()) return await new Promise(() => undefined);
		const url = new URL(options.url);
		const response = await new Promise<Response>((resolve, reject) => {
			let isOver = false;
			/** The requester goes on, if its process still lives. */
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
			if (options.abortSignal?.aborted) return fail(0, failure('canceled', 'ERR_CANCELED', ''));
			options.abortSignal?.addEventListener('abort', () =>
				fail(0, failure('canceled', 'ERR_CANCELED', '')),
			);
			if (options.timeout) {
				fail(options.timeout, failure('timeout exceeded', 'ECONNABORTED', 'read'));
			}
			this.carry(url, options, activity, goOn, resolve, fail);
		});
		return response;
	}

	/** Brings a request where it goes to, and its answer back, with the troubles that the history has for it. */
	private carry(
		url: URL,
		options: Request,
		activity: Activity,
		goOn: (delay: number, run: () => void) => void,
		resolve: (response: Response) => void,
		fail: (delay: number, error: Error) => void,
	): void {
		const { time, random } = this.world;
		if (url.origin === N8N_URL) {
			const answer = (status: number, body: unknown) => {
				this.world.trace(
					`n8n: answers the request of ${activity.name} with ${status} ${JSON.stringify(body)}`,
				);
				goOn(1, () => resolve(json(status, body)));
			};
			this.world.n8n.receive(url, options.body, answer, options.headers);
			return;
		}
		const kind = kindOf(url, options.method);
		const nth = this.counts[kind]++;
		const seen: SeenRequest = {
			at: time.now,
			by: activity.name,
			kind,
			taskId: kind === 'read' ? decodeURIComponent(url.pathname.split('/').pop() ?? '') : undefined,
			item: kind === 'create' ? itemOf(options.body) : undefined,
			status: 0,
			hasKey: 'Authorization' in (options.headers ?? {}),
			host: url.host,
			retryAfterMs: undefined,
			answeredAt: undefined,
		};
		this.seen.push(seen);
		const trouble = this.world.isTroubled
			? this.history.requests.find((entry) => entry.on === kind && entry.nth === nth)?.what
			: undefined;
		if (trouble) this.world.note(trouble);
		const there = random.between(1, this.history.service.slowestAnswerMs / 2, 'there', kind, nth);
		const back = random.between(1, this.history.service.slowestAnswerMs / 2, 'back', kind, nth);
		if (trouble && NOT_SENT.includes(trouble)) {
			this.world.trace(`${activity.name}: ${kind} not sent (${trouble})`);
			if (trouble === 'connection refused') {
				fail(there, failure('connect ECONNREFUSED', 'ECONNREFUSED', 'connect'));
			} else fail(there + back, failure('socket hang up', 'ECONNRESET', 'read'));
			return;
		}
		time.later(there, () => {
			const answer = this.answer(kind, options, activity.name, seen, trouble);
			seen.status = answer.statusCode;
			if (trouble === 'sent twice by the network') this.repeat(kind, options, activity.name, seen);
			const told = () => {
				seen.answeredAt = time.now;
				const task = kind === 'create' ? this.taskOf(answer) : undefined;
				if (task) task.toldTo = { process: activity.process, event: time.count };
				resolve(answer);
			};
			switch (trouble) {
				case 'answer lost':
					return fail(back, failure('socket hang up', 'ECONNRESET', 'read'));
				case 'no route, after it was sent':
					return fail(back, failure('read EHOSTUNREACH', 'EHOSTUNREACH', 'read'));
				case 'answer late':
					return goOn(back + 45_000, told);
				default:
					return goOn(back, told);
			}
		});
	}

	/** Something between n8n and the service sends a request a second time; the answer goes nowhere. */
	private repeat(kind: SeenRequest['kind'], options: Request, by: string, seen: SeenRequest): void {
		const before = this.tasks.length;
		this.properAnswer(kind, options, by, { ...seen });
		for (const task of this.tasks.slice(before)) task.isTwin = true;
	}

	private answer(
		kind: SeenRequest['kind'],
		options: Request,
		by: string,
		seen: SeenRequest,
		trouble: RequestTrouble | undefined,
	): Response {
		const refusal = refusalOf(trouble);
		// An answer that blames the server says nothing of what it has done.
		const isDone = ['500', '503'].includes(trouble ?? '') && this.seen.length % 2 === 0;
		if (refusal && isDone) this.properAnswer(kind, options, by, seen);
		if (refusal) {
			seen.retryAfterMs = Number(refusal.headers['retry-after'] ?? NaN) * 1000 || undefined;
			this.limitChanges.push(this.world.time.now);
			this.world.trace(`service: answers ${by} ${refusal.statusCode} to a ${kind} (${trouble})`);
			return refusal;
		}
		const answer = this.properAnswer(kind, options, by, seen);
		if (trouble) this.world.trace(`network: the ${kind} of ${by}: ${inWords(trouble)}`);
		// A refusal stays what it is.
		if (answer.statusCode !== 200) return answer;
		switch (trouble) {
			case 'answer garbled':
				return { ...answer, body: '<html><body>Please sign in</body></html>' };
			case 'answer cut short':
				return { ...answer, body: String(answer.body).slice(0, 8) };
			case 'answer without an id':
				return kind === 'create' ? json(200, { accepted: true }) : json(200, {});
			default:
				return answer;
		}
	}

	private properAnswer(
		kind: SeenRequest['kind'],
		options: Request,
		by: string,
		seen: SeenRequest,
	): Response {
		if (kind === 'download') {
			const body = Readable.from([Buffer.from(`picture at ${options.url}`)]);
			return { statusCode: 200, headers: { 'content-type': 'image/png' }, body };
		}
		if (options.headers?.Authorization !== `Bearer ${this.key}`) {
			this.world.trace(`service: refuses the key of ${by}`);
			return json(401, { message: 'This key is not valid' });
		}
		return kind === 'create' ? this.create(options, by, seen) : this.read(seen.taskId ?? '', by);
	}

	private create(options: Request, by: string, seen: SeenRequest): Response {
		const { time, random } = this.world;
		const refused = this.limitReached();
		if (refused) {
			this.world.note(`refused: ${refused}`);
			this.world.trace(`service: refuses the create for ${seen.item} (${by}): ${refused}`);
			const seconds = random.between(1, 8, 'retry-after', this.seen.length);
			if (!this.history.service.saysRetryAfter) return json(429, { message: refused });
			seen.retryAfterMs = seconds * 1000;
			return json(429, { message: refused }, { 'retry-after': String(seconds) });
		}
		const number = this.tasks.length;
		const body = options.body as { input?: unknown; webhook_url?: string };
		const { longestTaskMs, failing, hanging } = this.history.service;
		const item = seen.item ?? '';
		const told = this.script?.(item, this.tasks.filter((task) => task.item === item).length + 1);
		const isHanging = hanging.includes(number);
		if (isHanging) this.world.note('task hangs');
		const duration =
			told?.durationMs ??
			(isHanging ? NEVER_MS : random.between(200, longestTaskMs, 'duration', number));
		const task: ServiceTask = {
			id: `task-${number + 1}-${random.between(1000, 9999, 'id', number)}`,
			item,
			results: told?.results ?? 1,
			callback: told?.callback,
			createdAt: time.now,
			endsAt: time.now + duration,
			outcome: (told?.fails ?? failing.includes(number)) ? 'FAILURE' : 'SUCCESS',
			webhookUrl: body.webhook_url,
			input: body.input,
			by,
			isTwin: false,
			toldTo: undefined,
		};
		this.tasks.push(task);
		if (body.webhook_url !== undefined) {
			const token = new URL(body.webhook_url).searchParams.get('token');
			if (token) this.secrets.add(token);
		}
		seen.taskId = task.id;
		this.world.trace(`service: makes ${task.id} for ${task.item} (${by})`);
		time.later(duration, () => this.end(task));
		return json(200, { taskId: task.id, ...this.talk(task) });
	}

	private end(task: ServiceTask): void {
		if (this.ended.has(task.id)) return;
		this.ended.add(task.id);
		this.world.trace(`service: ${task.id} ends with ${task.outcome}`);
		if (task.outcome === 'FAILURE') this.world.note('task failed');
		this.callBack(task);
	}

	private limitReached(): string | undefined {
		const { now } = this.world.time;
		const unfinished = this.tasks.filter((task) => !this.isFinished(task)).length;
		if (this.maxUnfinished > 0 && unfinished >= this.maxUnfinished) return 'too many tasks';
		const recent = this.tasks.filter(({ createdAt }) => createdAt > now - 1000).length;
		if (this.maxPerSecond > 0 && recent >= this.maxPerSecond) return 'too many requests';
		return undefined;
	}

	private read(taskId: string, by: string): Response {
		const task = this.task(taskId);
		if (!task || this.world.time.now < task.createdAt + this.history.service.lagMs) {
			if (task) this.world.note('record lags behind the create');
			return json(404, { message: 'No such task' });
		}
		const state = this.isFinished(task) ? task.outcome : 'PENDING';
		if (state !== 'PENDING') this.world.trace(`service: tells ${by} that ${taskId} is ${state}`);
		return json(200, {
			taskId,
			state,
			...(state === 'SUCCESS' && {
				resultUrls: Array.from(
					{ length: task.results },
					(_, index) => `${MEDIA_URL}/${taskId}-${index}.png`,
				),
				creditsConsumed: 8,
			}),
			...(state === 'FAILURE' && { message: 'the model gave up', creditsConsumed: 0 }),
			...this.talk(task),
		});
	}

	/** What some services repeat, though nobody should see it. */
	private talk({ webhookUrl, input }: ServiceTask): IDataObject {
		if (!this.history.service.isTalkative) return {};
		this.world.note('record repeats key and address');
		return {
			input: input as IDataObject,
			metadata: { webhook_url: webhookUrl ?? '', key: this.key },
		};
	}

	private taskOf({ body }: Response): ServiceTask | undefined {
		return this.tasks.find(({ id }) => typeof body === 'string' && body.includes(`"${id}"`));
	}

	private callBack(task: ServiceTask): void {
		if (task.webhookUrl === undefined) return;
		const nth = this.counts.callback++;
		const what = this.script
			? task.callback
			: this.world.isTroubled
				? this.history.callbacks.find((entry) => entry.nth === nth)?.what
				: undefined;
		if (what) this.world.note(`callback ${what}`);
		switch (what) {
			case 'lost':
				this.world.trace(`service: the callback of ${task.id} is lost`);
				return;
			case 'doubled':
				this.deliver(task, 0, 5);
				this.deliver(task, 0, this.world.random.between(5, 8, 'doubled', nth));
				return;
			case 'early':
				// The task is said to be finished before the endpoint that reads it knows.
				task.endsAt += 4_000;
				break;
			case 'late':
				this.deliver(task, 0, 30_000);
				return;
		}
		const delay = this.world.random.between(1, 300, 'callback', nth);
		this.deliver(task, 0, delay);
		if (!this.history.service.sendsTwice) return;
		this.world.note('callback doubled');
		this.deliver(task, 0, delay + this.world.random.between(0, 3, 'twice', nth));
	}

	/** Somebody who has seen a callback address, but not all of its token, makes a callback up. */
	forge(): void {
		const task = this.tasks.findLast(({ webhookUrl }) => webhookUrl !== undefined);
		if (!task) return;
		this.world.note('forged callback');
		const url = new URL(task.webhookUrl ?? '');
		const token = url.searchParams.get('token') ?? '';
		const length = this.world.random.between(0, token.length - 1, 'forged', task.id);
		url.searchParams.set('token', token.slice(0, length));
		this.world.trace(`stranger: sends a callback of ${task.id} with a wrong token`);
		this.world.n8n.receive(url, { taskId: task.id, state: 'SUCCESS' }, (status) => {
			this.world.trace(`n8n: answers the stranger ${status}`);
			this.forged.push(status);
		});
	}

	/** Delivers a callback, and again where it was not answered with 200. */
	private deliver(task: ServiceTask, attempt: number, delay: number): void {
		const pause = [5_000, 20_000, 60_000][attempt];
		this.world.time.later(delay, () => {
			if (task.endsAt < this.lastCalledBack) this.world.note('callback reordered');
			this.lastCalledBack = Math.max(this.lastCalledBack, task.endsAt);
			let isOver = false;
			const end = (status: number, said?: unknown) => {
				if (isOver) return;
				isOver = true;
				this.answered.push({ at: this.world.time.now, taskId: task.id, status, said });
				this.world.trace(`service: the callback of ${task.id} is answered ${status}`);
				if (status !== 200 && pause !== undefined) this.deliver(task, attempt + 1, pause);
			};
			this.world.time.later(15_000, () => end(0));
			const body = callbackBody(task);
			this.world.n8n.receive(new URL(task.webhookUrl ?? ''), body, end);
		});
	}
}

function inWords(trouble: RequestTrouble): string {
	switch (trouble) {
		case 'answer lost':
			return 'its answer is lost';
		case 'answer late':
			return 'its answer comes 45 s late';
		case 'answer garbled':
			return 'its answer is a web page';
		case 'answer cut short':
			return 'half of its answer is missing';
		case 'answer without an id':
			return 'its answer says nothing of a task';
		case 'sent twice by the network':
			return 'it reaches the service twice';
		default:
			return trouble;
	}
}

/** The specification does not show a callback's fields, so that there are two shapes of them. */
const callbackBody = ({ id, outcome }: ServiceTask): unknown =>
	id.endsWith('1')
		? { id: 'event-1', type: 'task.finished', data: { taskId: id, state: outcome } }
		: { taskId: id, state: outcome };

function kindOf({ origin }: URL, method: string | undefined): 'create' | 'read' | 'download' {
	if (origin !== BASE_URL) return 'download';
	return method === 'POST' ? 'create' : 'read';
}

/** The ask and the item that a prompt names. */
export function itemOf(body: unknown): string {
	return /ask \d+, item \d+/.exec(JSON.stringify(body))?.[0] ?? '';
}

function refusalOf(trouble: RequestTrouble | undefined): Response | undefined {
	switch (trouble) {
		case '429':
			return json(429, { message: 'Too many' });
		case '429 with Retry-After':
			return json(429, { message: 'Too many' }, { 'retry-after': '7' });
		case '503':
			return json(503, { message: 'Busy' });
		case '503 with Retry-After':
			return json(503, { message: 'Busy' }, { 'retry-after': '7' });
		case '500':
			return json(500, { message: 'Broken' });
		case "a firewall's 403":
			return { ...json(403, {}), body: '<html><h1>Forbidden</h1></html>' };
		case '404':
			return json(404, { message: 'No such task' });
		case '401':
			return json(401, { message: 'This key is not valid' });
		default:
			return undefined;
	}
}
