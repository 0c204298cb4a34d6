import type { ICredentialDataDecryptedObject, IWebhookFunctions } from 'n8n-workflow';

import { CREDENTIAL_TYPE } from '../service/connect';
import type { Clock } from '../shared/clock';
import { Memory } from '../shared/memory';
import { credentialIdOf } from './startOnce';

/** How long a changed base URL may go unnoticed. A changed key is noticed by the first token that is made with it. */
const MAX_AGE_MS = 60_000;

/** Between two looks because of wrong tokens: whoever sends those must not be able to keep n8n busy. */
const MIN_REFRESH_MS = 2_000;

const MAX_REMEMBERED = 1_000;

/**
 * The credentials of the nodes of this process that callbacks come to. A look-up costs n8n more CPU time than all else
 * that a callback needs, so it is not repeated for each one.
 */
export class CallbackCredentials {
	/** Promises, so that callbacks that come together share one look-up. */
	private readonly known: Memory<Promise<ICredentialDataDecryptedObject>>;

	private readonly refreshed: Memory<true>;

	constructor(clock: Clock) {
		this.known = new Memory(clock, MAX_AGE_MS, MAX_REMEMBERED);
		this.refreshed = new Memory(clock, MIN_REFRESH_MS, MAX_REMEMBERED);
	}

	/**
	 * @param isRefresh whether it is to be as it is now, or was at a refresh within the last two seconds
	 * @returns the node's credential, looked up within the last minute
	 * @throws whatever n8n's look-up throws
	 */
	async get(
		context: IWebhookFunctions,
		isRefresh = false,
	): Promise<ICredentialDataDecryptedObject> {
		// By node as well, so that no workflow gets by with what another one was allowed to use.
		const node = context.getNode();
		const key = `${context.getWorkflow().id}/${node.id}/${credentialIdOf(node)}`;
		const mayRefresh = isRefresh && !this.refreshed.get(key);
		const known = mayRefresh ? undefined : this.known.get(key);
		if (known) return await known;
		const credential = context.getCredentials(CREDENTIAL_TYPE);
		this.known.set(key, credential);
		if (isRefresh) this.refreshed.set(key, true);
		void credential.catch(() => this.known.delete(key));
		return await credential;
	}
}
