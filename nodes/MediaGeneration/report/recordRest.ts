import type { IDataObject } from 'n8n-workflow';

import { cutDataUris } from '../shared/dataUri';
import { isRecord, isSame, plainName, toNumber } from '../shared/json';

type Entry = [name: string, value: IDataObject[string]];

/** The places of a task's fields in an answer: the top, and inside these. */
const WRAPPERS = ['data', 'task'];

/**
 * What the service's record of a task holds beside the item's own fields. The prompt metadata come first. Fields are not
 * changed, except that long data URIs are cut.
 *
 * @param json the item, with `taskId`, `state`, `resultUrls`, `creditsConsumed`, and `model` and `input` if this node sent
 *   them
 * @see docs/service.md, section 2
 */
export function recordRest(record: IDataObject, json: IDataObject): IDataObject {
	// Cut first: the item's own `input` is cut, too.
	return restIn(cutDataUris(record), json);
}

function restIn(record: IDataObject, json: IDataObject, isInside = false): IDataObject {
	const entries = Object.entries(record).flatMap(([name, value]): Entry[] => {
		if (!isInside && WRAPPERS.includes(name) && isRecord(value)) {
			const rest = restIn(value, json, true);
			return Object.keys(rest).length > 0 ? [[name, rest]] : [];
		}
		return repeats(plainName(name), value, json) ? [] : [[name, value]];
	});
	return Object.fromEntries(entries.sort(([one], [other]) => rankOf(one) - rankOf(other)));
}

/** Whether the item's own fields say this, too. A state or links that the package has read otherwise are kept. */
function repeats(name: string, value: unknown, json: IDataObject): boolean {
	const isNothing = value === null || (Array.isArray(value) && value.length === 0);
	switch (name) {
		case 'taskid':
		case 'id':
			return String(value).trim().toLowerCase() === String(json.taskId).toLowerCase();
		case 'state':
			return String(value).trim().toUpperCase() === json.state;
		case 'creditsconsumed':
			return isNothing || toNumber(value) === json.creditsConsumed;
		case 'resulturls': {
			const urls = Array.isArray(json.resultUrls) ? json.resultUrls : [];
			const listed = [value].flat();
			const isText = listed.every((entry) => typeof entry === 'string' && entry.trim() !== '');
			return isNothing || (urls.length > 0 && isText);
		}
		case 'model':
		case 'input':
			return isSame(value, json[name]);
		default:
			return false;
	}
}

/** The names of prompt metadata are not shown in the specification: these are the usual ones. */
const RANKS = [/prompt/, /^(data|task)$/, /^(input|model|param|meta|setting|option|seed|style)/];

function rankOf(name: string): number {
	const rank = RANKS.findIndex((pattern) => pattern.test(plainName(name)));
	return rank === -1 ? RANKS.length : rank;
}
