import { createHmac } from 'node:crypto';

import { SECOND } from '../../durations';
import { ServiceError } from '../../service/errors';
import { RateLimiter } from '../../service/limits';
import { answerOfError, answerOfRefusal, type Answer, ServiceModel } from '../../service/model';
import type { SimulatedTask } from '../../service/tasks';
import type { CallbackTrouble, History } from '../history';
import { callbackTroubleOf, fateOf, NEVER_MS } from './fate';
import type { Request, SeenRequest, Told } from './network';
import type { World } from './world';

export const BASE_URL = 'https://service.test';
const MEDIA_URL = 'https://media.test';

/** So long the sender of a callback waits for an answer. */
const ANSWER_MS = 15_000;

/** A task as the history knows it, beside the record that the service keeps. */
export interface ServiceTask {
	id: string;
	/** The ask and the item that it was made for, as the prompt names them. */
	item: string;
	createdAt: number;
	/** When those who read it learn of its end. */
	endsAt: number;
	outcome: 'SUCCESS' | 'FAILURE';
	callback: CallbackTrouble | undefined;
	webhookUrl: string | undefined;
	/** The activity that created it, e.g. `execution 3`. */
	by: string;
	/** Whether the network made two requests of one. */
	isTwin?: boolean;
	toldTo?: Told;
	/** Whether it cost something although it failed. */
	isCharged: boolean;
}

/** The account and the callbacks of a history: the rules are the simulated service's own. */
export class Service {
	readonly tasks: ServiceTask[] = [];

	key = 'sk-live-first-key-of-this-account';

	/** All keys that there have been, and the tokens of all callback addresses. */
	readonly secrets = new Set<string>([this.key]);

	readonly answered: Array<{ at: number; taskId: string; status: number; said: unknown }> = [];

	/** The answers to forged callbacks. */
	readonly forged: number[] = [];

	/** Tasks that may be unfinished at once, and creates that are let in within a second; 0 without a limit. */
	limits: Pick<History['service'], 'maxUnfinished' | 'maxPerSecond'>;

	private readonly model: ServiceModel;

	/** When the latest of the tasks had ended whose callback was sent, and how many were sent. */
	private lastCalledBack = 0;
	private posts = 0;

	private readonly history: History['service'];

	constructor(private readonly world: World) {
		this.history = world.history.service;
		this.limits = this.history;
		const { time, random } = world;
		this.model = new ServiceModel(
			{
				now: () => time.now,
				later: (ms, run) => time.later(ms, run),
				newTaskId: () => {
					const number = this.tasks.length;
					return `task-${number + 1}-${random.between(1000, 9999, 'id', number)}`;
				},
				post: async (url, body) => await this.post(url, body),
			},
			{
				mediaUrl: () => MEDIA_URL,
				settings: {
					createLagMs: this.history.lagMs,
					callbackCopies: this.history.sendsTwice ? 2 : 1,
					callbackBackoffMs: 10_000,
				},
				fate: ({ input, webhookUrl }) => fateOf(world, itemOf(input), webhookUrl !== undefined),
				onEnd: (task) => this.noteEnd(task),
			},
		);
		this.enterKey();
	}

	task(id: string): ServiceTask | undefined {
		return this.tasks.find((task) => task.id === id);
	}

	/** The task that the text of an answer names. */
	taskIn(text: string): ServiceTask | undefined {
		return this.tasks.find(({ id }) => text.includes(`"${id}"`));
	}

	isFinished({ endsAt }: ServiceTask): boolean {
		return this.world.time.now >= endsAt;
	}

	/** All tasks that are under way end in this moment. */
	endAll(): void {
		for (const task of this.tasks) {
			const { record, own } = this.model.store.get(task.id);
			if (record.state !== 'PENDING') continue;
			task.endsAt = this.world.time.now + (own.endLagMs ?? 0);
			this.model.store.complete(task.id);
		}
	}

	/** Whether the token of an address was made with the present key. */
	private isOfKey(webhookUrl = ''): boolean {
		const { pathname, searchParams } = new URL(webhookUrl);
		const reference = searchParams.get('reference');
		const signed = reference === null ? pathname : `${pathname}\n${reference}`;
		return createHmac('sha256', this.key).update(signed).digest('hex') === tokenIn(webhookUrl);
	}

	changeKey(): void {
		// A token of the former key opens nothing any more.
		for (const { webhookUrl } of this.tasks) this.secrets.delete(tokenIn(webhookUrl) ?? '');
		this.key = `sk-live-key-after-${this.secrets.size}-changes`;
		this.secrets.add(this.key);
		this.enterKey();
	}

	private enterKey(): void {
		this.model.apiKey = this.key;
		if (!this.history.isTalkative) return;
		// What some services repeat, though nobody should see it.
		this.model.switches.configure({
			createShape: '$record',
			repeatWebhookUrl: true,
			extraFields: { metadata: { key: this.key } },
		});
	}

	/** What the API, or the media host, answers to a request. A create notes its task there. */
	answer({ url, headers, body }: Request, seen: SeenRequest): Answer {
		if (seen.kind === 'download') return this.file(url);
		try {
			this.model.authenticate(headers?.Authorization);
			const answer = seen.kind === 'create' ? this.create(body, seen) : this.read(seen);
			if (this.history.isTalkative) this.world.note('record repeats key and address');
			return answer;
		} catch (error) {
			if (!(error instanceof ServiceError)) throw error;
			this.noteRefusal(error, seen);
			return answerOfError(error);
		}
	}

	private noteRefusal(
		{ status, code, message }: ServiceError,
		{ kind, item, taskId, by }: SeenRequest,
	) {
		const { world } = this;
		if (code === 'asks to wait') {
			world.note(`${status} with a long Retry-After`);
			world.trace(`service: asks ${by} to wait with ${item} (${message})`);
		} else if (status === 429) {
			const limit = code.replaceAll('_', ' ');
			world.note(`refused: ${limit}`);
			world.trace(`service: refuses the create for ${item} (${by}): ${limit}`);
		} else if (status === 401) world.trace(`service: refuses the key of ${by}`);
		else if (kind === 'read' && this.task(taskId ?? '') && !this.isForgotten(taskId ?? '')) {
			world.note('record lags behind the create');
		}
	}

	/** Until when the service takes no create, milliseconds since the history began. */
	private pausedUntil: number | undefined;

	private readonly limiter = new RateLimiter();

	/** @throws ServiceError where a create is to wait for longer than a turn */
	private checkPauses(): void {
		const { time, history } = this.world;
		const [pause] = history.longPauses;
		if (pause && this.tasks.length >= pause.afterTasks) {
			this.pausedUntil ??= time.now + pause.seconds * SECOND;
			if (time.now < this.pausedUntil) throw askToWait(pause.status, this.pausedUntil - time.now);
		}
		const { maxPerMinute } = history.service;
		if (maxPerMinute === 0) return;
		const rate = { kind: 'fixed', windowSeconds: 60, perSecond: maxPerMinute / 60 } as const;
		const freeAt = this.limiter.freeAt(time.now, rate);
		if (freeAt > time.now) throw askToWait(429, freeAt - time.now);
		this.limiter.take(time.now, rate);
	}

	private create(body: unknown, seen: SeenRequest): Answer {
		this.checkPauses();
		const { taskId, answer } = this.model.create(body);
		const made = this.model.store.tasks.get(taskId ?? '');
		if (!made) return answer();
		const { createdAt, own, webhookUrl } = made;
		const task: ServiceTask = {
			id: made.taskId,
			item: seen.item ?? '',
			createdAt,
			endsAt: createdAt + Number(own.latencyMs) + (own.endLagMs ?? 0),
			outcome: own.outcome ?? 'SUCCESS',
			callback: webhookUrl === undefined ? undefined : callbackTroubleOf(this.world),
			webhookUrl,
			isCharged: own.outcome === 'FAILURE' && own.extraFields?.creditsConsumed !== undefined,
			by: seen.by,
		};
		this.tasks.push(task);
		seen.taskId = task.id;
		if (own.latencyMs === NEVER_MS) this.world.note('task hangs');
		const token = tokenIn(webhookUrl);
		// An address may have been made just before the key was changed.
		if (token && this.isOfKey(webhookUrl)) this.secrets.add(token);
		this.world.trace(`service: makes ${task.id} for ${task.item} (${task.by})`);
		return answer();
	}

	/** Whether the service no longer knows a task. */
	isForgotten(id: string): boolean {
		const number = this.tasks.findIndex((task) => task.id === id);
		const forgotten = this.world.history.forgotten.find(({ nth }) => nth === number);
		const { createdAt = 0 } = this.tasks[number] ?? {};
		return forgotten !== undefined && this.world.time.now >= createdAt + forgotten.afterMs;
	}

	private read({ taskId = '', by }: SeenRequest): Answer {
		if (this.isForgotten(taskId)) {
			this.world.note('a task forgotten by the service');
			this.world.trace(`service: tells ${by} that there is no ${taskId}`);
			throw new ServiceError(404, 'not_found', `There is no task ${taskId}.`);
		}
		const answer = this.model.read(taskId).answer();
		const { state } = JSON.parse(answer.body) as { state: string };
		if (state !== 'PENDING') this.world.trace(`service: tells ${by} that ${taskId} is ${state}`);
		return answer;
	}

	/** A result, as the media host sends it. */
	private file(url: string): Answer {
		const task = this.tasks.find(({ id }) => url.includes(`/${id}/`));
		const { mediaStatus: status = 200 } = task ? this.model.store.get(task.id).own : {};
		if (status !== 200) return answerOfRefusal({ status: Number(status) });
		return { status, headers: {}, type: 'image/png', body: `picture at ${url}` };
	}

	private noteEnd({ taskId, record, webhookUrl }: SimulatedTask): void {
		const { world } = this;
		world.trace(`service: ${taskId} ends with ${record.state}`);
		if (record.state === 'FAILURE') world.note('task failed');
		const { isCharged, callback } = this.task(taskId) ?? {};
		if (isCharged) world.note('failed task charged');
		if (webhookUrl === undefined) return;
		if (callback) world.note(`callback ${callback}`);
		if (callback === 'lost') world.trace(`service: the callback of ${taskId} is lost`);
		else if (this.history.sendsTwice) world.note('callback doubled');
	}

	private async post(url: string, body: unknown): Promise<number> {
		const { world } = this;
		const { time } = world;
		const [, taskId = ''] = /"taskId":"([^"]+)"/.exec(JSON.stringify(body)) ?? [];
		const { endsAt = 0 } = this.task(taskId) ?? {};
		if (endsAt < this.lastCalledBack) world.note('callback reordered');
		this.lastCalledBack = Math.max(this.lastCalledBack, endsAt);
		return await new Promise<number>((resolve, reject) => {
			let isOver = false;
			const end = (status: number, said?: unknown) => {
				if (isOver) return;
				isOver = true;
				this.answered.push({ at: time.now, taskId, status, said });
				world.trace(`service: the callback of ${taskId} is answered ${status}`);
				if (status === 0) reject(new Error('No answer'));
				else resolve(status);
			};
			time.later(ANSWER_MS, () => end(0));
			// Copies that are sent at once do not arrive at once.
			time.later(world.random.between(0, 3, 'post', this.posts++), () => {
				world.n8n.webhooks.receive(new URL(url), body, end);
			});
		});
	}
}

function askToWait(status: number, ms: number): ServiceError {
	const seconds = Math.ceil(ms / SECOND);
	const message = `The account may create tasks again in ${seconds} s.`;
	return new ServiceError(status, 'asks to wait', message, { 'retry-after': String(seconds) });
}

const tokenIn = (url = '') => URL.parse(url)?.searchParams.get('token');

/** The ask and the item that a prompt names. */
export const itemOf = (body: unknown): string =>
	/ask \d+, item \d+/.exec(JSON.stringify(body))?.[0] ?? '';
