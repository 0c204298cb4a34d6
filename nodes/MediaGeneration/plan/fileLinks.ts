import type { IDataObject, IExecuteFunctions } from 'n8n-workflow';

import { isOutOfReach } from '../callback/reachability';
import { ItemError, messageOf } from '../shared/itemError';
import { describe, type ItemParameters } from '../shared/parameters';
import { filesIn, type ItemFile } from './itemFile';

/**
 * Whether the files of an input are sent as links that n8n signs, and not as data.
 *
 * @param baseUrl the address of the service, which is to fetch them
 * @throws ItemError where n8n makes no link of a file, or the service could not open it
 */
export function readSendsLinks(
	parameters: ItemParameters,
	{ helpers }: IExecuteFunctions,
	input: IDataObject,
	baseUrl: string,
): boolean {
	const value = parameters.option('sendFilesAs') ?? 'data';
	if (value === 'data') return false;
	if (value !== 'link') {
		throw new ItemError(`The parameter 'Send Files As' is ${describe(value)}`, {
			description: "Choose 'Data' or 'Links'.",
		});
	}
	for (const file of filesIn(input)) {
		const obstacle = obstacleOf(helpers, file, baseUrl);
		if (obstacle === undefined) continue;
		const [why, wayOut] = obstacle;
		throw new ItemError(`The parameter 'Send Files As' is 'Links', but ${why}`, {
			description: `${wayOut}, or choose 'Data' in 'Send Files As'. No task was created.`,
		});
	}
	return true;
}

/** @returns what keeps the service from fetching a file from n8n, and the way out; undefined where nothing does */
function obstacleOf(
	helpers: IExecuteFunctions['helpers'],
	file: ItemFile,
	baseUrl: string,
): [string, string] | undefined {
	if (!('createBinarySignedUrl' in helpers)) {
		return ['this version of n8n makes no links of files', 'Update n8n'];
	}
	if (!file.isStored) {
		return [
			`n8n keeps the file '${file.name}' in memory`,
			"Have n8n keep files elsewhere (N8N_DEFAULT_BINARY_DATA_MODE is 'filesystem', 'database' or 's3')",
		];
	}
	let link: string;
	try {
		link = file.link(helpers, 1);
	} catch (error) {
		return [
			`n8n makes no link of the file '${file.name}': ${messageOf(error)}`,
			'Look at the file',
		];
	}
	const isReached = URL.canParse(link) && !isOutOfReach(link, baseUrl);
	if (isReached) return undefined;
	return [
		`the service cannot reach n8n at '${link.split('/').slice(0, 3).join('/')}'`,
		'Set N8N_EDITOR_BASE_URL to the public address of n8n',
	];
}
