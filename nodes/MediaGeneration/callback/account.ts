import type { INode } from 'n8n-workflow';

import { CREDENTIAL_TYPE } from '../service/connect';
import { digest } from '../shared/digest';

/** @returns the id that n8n gave to the node's credential; empty where it has none */
export function credentialIdOf({ credentials }: INode): string {
	return credentials?.[CREDENTIAL_TYPE]?.id ?? '';
}

/**
 * Names the account that a task belongs to: two accounts may use the same task ids. A service is told by its address,
 * and an account of the service by its credential in n8n. The API key has no part in the name, because a key is replaced
 * from time to time: the account stays the same, and none of its tasks may start a workflow again.
 *
 * @param baseUrl as `parseBaseUrl` returns it
 */
export function accountOf(baseUrl: string, credentialId: string): string {
	return digest([baseUrl, credentialId]);
}
