import type { IRun } from 'n8n-workflow';

/** In the ids of files that came with a webhook, until the execution is stored that they have started. */
const TEMPORARY = '/temp/';

/** The id of a file that was uploaded, as the node that took it in gives it out. */
export const uploadedId = (name: string): string =>
	`filesystem-v2:workflows/workflow/executions${TEMPORARY}binary_data/${name}`;

/**
 * What n8n does when it stores an execution that a webhook has started: uploaded files get the id of the execution in
 * their own (`restoreBinaryDataId` of n8n 2.41).
 *
 * @param rename moves the file
 */
export function renameUploads(
	{ data }: IRun,
	executionId: string,
	rename: (from: string, to: string) => void,
): void {
	const items = Object.values(data.resultData.runData)
		.flat()
		.flatMap((task) => task.data?.main ?? [])
		.flatMap((output) => output ?? []);
	const files = items.flatMap(({ binary = {} }) => Object.values(binary));
	// The items that a node has put out, and those that the next node has got, share their files.
	for (const file of new Set(files)) {
		if (!file.id?.includes(TEMPORARY)) continue;
		const id = file.id.replace(TEMPORARY, `/${executionId}/`);
		rename(file.id, id);
		file.id = id;
	}
}
