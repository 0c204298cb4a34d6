import type { IExecuteFunctions } from 'n8n-workflow';

import { ServiceClient } from '../service/client';
import { connect, type Connection } from '../service/connect';
import { ServiceError } from '../service/serviceError';
import { messageOf } from '../shared/itemError';
import { settled } from '../shared/promises';

/** The service with the node's credential; or without it, so that nothing can be sent. */
export type RunConnection = Connection & { isBroken: boolean };

/**
 * Connects a run with the service. A run that has slept, and whose credential cannot be used any more, goes on without
 * it: nothing is sent, and its tasks are tried again in each turn, until their time is up.
 *
 * @param hasSlept whether the run has slept
 * @param known the service, if the run has connected with it before
 * @throws UserError if the credential cannot be used
 */
export async function connectAnyway(
	context: IExecuteFunctions,
	hasSlept: boolean,
	known?: Connection,
): Promise<RunConnection> {
	if (known) return { ...known, isBroken: false };
	const connected = await settled(connect(context));
	if ('value' in connected) return { ...connected.value, isBroken: false };
	const { error } = connected;
	if (!hasSlept) throw error;
	const message = messageOf(error);
	context.logger.warn(`${context.getNode().name}: the credential cannot be used. ${message}`);
	const baseUrl = 'https://credential.invalid';
	const refuse = async () => await Promise.reject(new ServiceError('unreachable', message));
	const client = new ServiceClient(refuse, baseUrl, []);
	return { client, apiKey: '', baseUrl, models: [], openFile: () => undefined, isBroken: true };
}
