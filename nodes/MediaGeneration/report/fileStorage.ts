import { messageOf } from '../shared/itemError';

/** The way out: a node that stops has no output with the result URLs. */
export const AGAIN =
	'The task is done and paid for: fetch its results again with the operation Task → Get.';

/** n8n's setting for the largest file in its database: 512 MiB by default, 1024 MiB at most. */
const DATABASE_LIMIT = 'N8N_BINARY_DATA_DATABASE_MAX_FILE_SIZE';

/** The error codes of a full disk. */
export const isStorageFull = (error: unknown) =>
	error instanceof Error &&
	'code' in error &&
	['ENOSPC', 'EDQUOT', 'EROFS', 'EACCES'].includes(String(error.code));

/** The advice if the file arrived and n8n's own storage refused it. */
export function explainStorage(error: unknown): string {
	const said = messageOf(error);
	const next = said.includes(DATABASE_LIMIT)
		? `Raise ${DATABASE_LIMIT} (in MiB, at most 1024), or set N8N_DEFAULT_BINARY_DATA_MODE to 'filesystem' or 's3': n8n keeps files in its database here, up to a limit.`
		: `n8n's storage of files did not take the file: ${said.slice(0, 200)}. See N8N_DEFAULT_BINARY_DATA_MODE.`;
	return `${next} ${AGAIN}`;
}
