import type { IExecuteFunctions } from 'n8n-workflow';

import { webhookBase } from '../n8n/internals';
import { isRecord } from '../shared/json';
import { callbackAddress } from './callbackToken';

/** The trigger that the result of a task goes to. */
export interface Recipient {
	/** The trigger's address; without n8n's own address, if that is where the trigger is. */
	address: string;
	/** The id of the trigger's node, if the trigger is in this workflow: its ledger tells whether it has started. */
	triggerId?: string | undefined;
}

/** @returns undefined if the value is no recipient */
export function asRecipient(value: unknown): Recipient | undefined {
	if (!isRecord(value) || typeof value.address !== 'string') return undefined;
	const { address, triggerId } = value;
	return { address, ...(typeof triggerId === 'string' && { triggerId }) };
}

/**
 * The recipient's address with its token, by n8n's present address and the present key. If somebody else has the former
 * address of n8n now, the token must not go there.
 */
export function signedAddress(
	context: IExecuteFunctions,
	{ address }: Recipient,
	apiKey: string,
): string {
	const url = address.startsWith('/') ? `${webhookBase(context)}${address}` : address;
	return callbackAddress(url, apiKey);
}

/** What a trigger made of a result. `taken`: n8n has stored an execution. `notNow`: the trigger could not answer yes or no. */
export interface DeliveryAnswer {
	kind: 'taken' | 'notSelected' | 'refused' | 'notNow';
	/** The words of the answer, if it is not a yes. */
	words?: string;
}

/** What is known of the deliveries of one task. Times are milliseconds of the clock. */
export interface Deliveries {
	/** When the ledger was asked last. */
	askedAt?: number;
	/** The last answer of the trigger, and when it came. */
	answer?: DeliveryAnswer;
	at?: number;
	/** Since when the trigger answers like this, and when it first answered. */
	since?: number;
	firstAt?: number;
}

/** An answer is final when the trigger has given it for so long, milliseconds. */
export const FINAL_AFTER_MS = 15 * 60_000;

/** Writes down what a delivery has come to. @param now milliseconds of the clock */
export function noteAnswer(deliveries: Deliveries, answer: DeliveryAnswer, now: number): void {
	const { answer: before, since, firstAt = now } = deliveries;
	const isSame = before?.kind === answer.kind;
	Object.assign(deliveries, { answer, at: now, since: isSame ? since : now, firstAt });
}

/** Whether a trigger has just taken a task: its workflow starts within a minute. */
export const isJustTaken = ({ answer, at, since }: Deliveries = {}): boolean =>
	answer?.kind === 'taken' && at === since;

/**
 * Whether a task needs no further delivery, or cannot be delivered. Otherwise the result is delivered again.
 *
 * @param until when the time of the task is up, milliseconds of the clock
 * @param hasLedger whether the ledger tells when the trigger has started. The answer *taken* says that n8n has stored an
 *   execution, which may be killed before its items leave.
 */
export function endOfDeliveries(
	{ answer, at = 0, since = at, firstAt = at }: Deliveries,
	{ until, hasLedger }: { until: number; hasLedger: boolean },
): 'result' | 'error' | undefined {
	const isFinal = at - since >= FINAL_AFTER_MS;
	switch (answer?.kind) {
		case 'notSelected':
			return 'result';
		case 'taken':
			return !hasLedger || isFinal ? 'result' : undefined;
		case 'refused':
			return isFinal ? 'error' : undefined;
		case 'notNow':
			return at >= Math.max(until, firstAt + FINAL_AFTER_MS) ? 'error' : undefined;
		case undefined:
			return undefined;
	}
}
