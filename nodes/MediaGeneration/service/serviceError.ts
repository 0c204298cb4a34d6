import { withoutStop } from '../shared/itemError';
import { type Kind, type Meaning, meaningOf } from './meaning';
import type { Service } from './services';

/** Why a request failed. */
export type ServiceErrorKind = Exclude<Kind, 'answered'>;

type Details = Partial<
	Pick<ServiceError, 'description' | 'statusCode' | 'meaning' | 'isRefusal' | 'said' | 'endsBatch'>
> &
	Partial<Pick<Meaning, 'retryAfterMs'>>;

/**
 * A request that failed, with what the answer means. `message` says what happened, `description` says what to do.
 * Neither contains the API key.
 */
export class ServiceError extends Error {
	override readonly name = 'ServiceError';
	readonly description?: string | undefined;
	/** The HTTP status of the answer, if there was one. */
	readonly statusCode?: number | undefined;
	readonly meaning: Meaning;
	/** The service's own words, if the answer has any. */
	readonly said?: string | undefined;
	/** Whether a record without a state says with an error code why there is none: so may end a task. */
	readonly isRefusal: boolean;
	/** Whether the refusal of an order says that the service takes no other order either: no credits, or a refused key. */
	readonly endsBatch: boolean;

	constructor(
		readonly kind: ServiceErrorKind,
		message: string,
		{
			meaning = meaningOf(kind),
			retryAfterMs = meaning.retryAfterMs,
			isRefusal = false,
			endsBatch = false,
			...details
		}: Details = {},
	) {
		super(message);
		Object.assign(this, details);
		this.isRefusal = isRefusal;
		this.endsBatch = endsBatch;
		this.meaning = { ...meaning, kind, retryAfterMs };
	}

	/** How long the service asked to wait before the next request, milliseconds. */
	get retryAfterMs(): number | undefined {
		return this.meaning.retryAfterMs;
	}

	/** Whether the service took the create that failed, as far as known. */
	get taken(): Meaning['taken'] {
		return this.meaning.taken;
	}

	/** Whether a create may be sent again, and may succeed then: the service certainly did not take the task. */
	get isToSendAgain(): boolean {
		return this.taken === 'no' && this.meaning.again;
	}

	/** Whether the service itself says that it knows no such task for this account. */
	get isNoSuchTask(): boolean {
		return this.kind === 'notFound' && this.meaning.speaker === 'service';
	}

	/** Whether an order was answered without an id, by the service or by something before it. */
	get isWithoutId(): boolean {
		return this.kind === 'unexpectedAnswer';
	}

	/** Whether the key, or the right of the key, is in question. */
	get isOfKey(): boolean {
		return this.meaning.scope === 'key';
	}

	/** Whether nothing shows that there is a service at the address. */
	get isOfAddress(): boolean {
		return this.meaning.scope === 'address';
	}

	/** Whether too much was asked, or the service asks to wait before the next request. */
	get asksToSlowDown(): boolean {
		const { kind, retryAfterMs } = this;
		return kind === 'tooManyRequests' || (kind === 'serviceDown' && retryAfterMs !== undefined);
	}
}

/** What was asked of the service: a create, the record of a task, or the balance. */
export type Asked = 'create' | 'credits' | { taskId: string };

const CHECK_TASK =
	'Check the task id, and that the credential belongs to the account that created the task.';

/** What to do if the request itself may be refused, and not the key or the account. */
function lookAt(asked: Asked, ofCreate: string): string {
	if (asked === 'create') return ofCreate;
	return asked === 'credits'
		? "Check the 'Base URL' of the credential, and in your account what the API key may do."
		: CHECK_TASK;
}

/** Whether a refusal in JSON is about the order itself, its model or a field of its input, and not about the address. */
export const isOfOrder = (kind: ServiceErrorKind, status: number): boolean =>
	kind === 'notFound' || status === UNPROCESSABLE;

const UNPROCESSABLE = 422;

/** What to do about such an order. */
export const lookAtOrder = (kind: ServiceErrorKind, model: string): string =>
	kind === 'notFound'
		? `Check the model '${model}' of this item. If the service refuses every item, check the 'Base URL' of the credential, too.`
		: LOOK_AT_INPUT;

const LOOK_AT_INPUT =
	'Check the model and the input fields of this item against what the service offers.';

/** Words of money. A prompt may have them, too: they choose what is shown, and decide nothing. */
const OF_MONEY = /credit|balance|billing|payment|quota|funds/i;

/** @returns a further hint if the words of a refusal let think of an empty account */
export const moneyHint = (kind: ServiceErrorKind, said = ''): string | undefined =>
	['tooManyRequests', 'forbidden', 'rejected'].includes(kind) && OF_MONEY.test(said)
		? 'This looks as if the account had no credits left: the Media Generation Credits node shows the balance.'
		: undefined;

/** Words of safety, in the same way. */
const OF_SAFETY =
	/safety|content[ _-]?(?:policy|filter)|moderat|nsfw|sensitive|inappropriate|prohibited|flagged|violat/i;

/** @returns the advice, with the prompt in it if the words of a refusal are about safety */
export const orChangePrompt = (kind: ServiceErrorKind, advice: string, said = ''): string =>
	['forbidden', 'notFound', 'rejected'].includes(kind) && OF_SAFETY.test(said)
		? `${withoutStop(advice)}, or change the prompt: the service's words are about safety.`
		: advice;

const LATER =
	'The service may work again later. A task that was created goes on: fetch it with the operation Wait for Task.';

/** What happened, and what to do, where that does not depend on what was asked. */
const EXPLAINED: Partial<Record<ServiceErrorKind, Explanation>> = {
	unreachable: [
		'The service cannot be reached: the gateway before it has no connection to it',
		LATER,
	],
	tooLarge: [
		'The request is too large for the service',
		"Send smaller files, or choose 'Links' in 'Send Files As'. Without files: send less input.",
	],
	redirected: [
		'The service redirects to another address',
		"Enter the final address as the 'Base URL' of the credential. Redirects are not followed, so that the API key goes nowhere else.",
	],
	serviceDown: ['The service is not working at the moment', LATER],
	unauthorized: [
		'The service refused the API key',
		"Open the Media Generation credential and paste the API key of your account again. Check that the 'Base URL' belongs to the same account.",
	],
	noCredits: ['The account has not enough credits', 'Buy credits at the service, then try again.'],
	tooManyRequests: [
		'The account has too many tasks or requests under way',
		'Wait until other tasks of the account are finished, or run fewer of them at the same time.',
	],
};

type Explanation = readonly [what: string, next: string];

/**
 * Explains an answer that refuses a request.
 *
 * @param scope what the answer is about
 * @param create the path of a create
 * @returns what happened, and what to do
 */
export function explainKind(
	kind: ServiceErrorKind,
	asked: Asked,
	{ scope, create }: Pick<Meaning, 'scope'> & Pick<Service, 'create'>,
): Explanation {
	const known = EXPLAINED[kind];
	if (known) return known;
	if (kind === 'forbidden') {
		const ofCreate =
			'The model or the prompt of this item may not be allowed: change them, and run this item again. If the service refuses every item, check in your account what the API key may do.';
		return ['The service does not allow this', lookAt(asked, ofCreate)];
	}
	if (kind === 'notFound' && typeof asked !== 'string') {
		return ['The service knows no such task for this account', CHECK_TASK];
	}
	if (kind === 'notFound') {
		const ofModel = ' If other items succeed, the model of this item does not exist.';
		return [
			'The service has no such address',
			create.includes('{')
				? `Check the model, and the 'Base URL' of the credential, to which ${create} is appended.`
				: `Check the 'Base URL' of the credential: it must be the part before ${create}.${asked === 'create' ? ofModel : ''}`,
		];
	}
	const ofAddress =
		"Check the 'Base URL' of the credential, and the proxy between n8n and the service, if there is one.";
	return [
		'The service did not accept the request',
		scope === 'address' ? ofAddress : lookAt(asked, LOOK_AT_INPUT),
	];
}
