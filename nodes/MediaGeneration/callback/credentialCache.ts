import type { ICredentialDataDecryptedObject, IWebhookFunctions } from 'n8n-workflow';

import { CREDENTIAL_TYPE } from '../service/connect';
import { settled } from '../shared/concurrency';
import type { Clock } from '../shared/clock';
import { credentialIdOf } from './startedTasks';

/** How long a changed base URL may go unnoticed. A changed key is noticed by the first token that is made with it. */
const MAX_AGE_MS = 60_000;

/** Between two looks because of wrong tokens: whoever sends those must not be able to keep n8n busy. */
const MIN_AGE_MS = 2_000;

const MAX_REMEMBERED = 1_000;

interface Remembered {
	/** A promise, so that callbacks that come together share one look-up. */
	credential: Promise<ICredentialDataDecryptedObject>;
	at: number;
	/** Whether it was looked up because of a wrong token. */
	isRefreshed: boolean;
}

/**
 * The credentials of the nodes of this process that callbacks come to. A look-up costs n8n more CPU time than all else
 * that a callback needs, so it is not repeated for each one.
 */
export class CallbackCredentials {
	private readonly remembered = new Map<string, Remembered>();

	constructor(private readonly clock: Clock) {}

	/**
	 * @returns the node's credential, looked up within the last minute
	 * @throws whatever n8n's look-up throws
	 */
	async get(context: IWebhookFunctions): Promise<ICredentialDataDecryptedObject> {
		return await this.lookUp(context, false);
	}

	/** @returns the node's credential as it is now, or was at a refresh within the last two seconds */
	async refresh(context: IWebhookFunctions): Promise<ICredentialDataDecryptedObject> {
		return await this.lookUp(context, true);
	}

	private async lookUp(
		context: IWebhookFunctions,
		isRefresh: boolean,
	): Promise<ICredentialDataDecryptedObject> {
		// By node as well, so that no workflow gets by with what another one was allowed to use.
		const node = context.getNode();
		const key = `${context.getWorkflow().id}/${node.id}/${credentialIdOf(node)}`;
		const known = this.remembered.get(key);
		// The first wrong token after a look-up may be a right one that was made with a new key.
		const isUsable = known !== undefined && (!isRefresh || known.isRefreshed);
		const maxAgeMs = isRefresh ? MIN_AGE_MS : MAX_AGE_MS;
		if (isUsable && this.clock.now() - known.at < maxAgeMs) return await known.credential;
		const credential = context.getCredentials(CREDENTIAL_TYPE);
		if (this.remembered.size >= MAX_REMEMBERED) this.remembered.clear();
		this.remembered.set(key, { credential, at: this.clock.now(), isRefreshed: isRefresh });
		const found = await settled(async () => await credential);
		if ('value' in found) return found.value;
		this.remembered.delete(key);
		throw found.error;
	}
}
