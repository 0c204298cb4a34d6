import type { IDataObject } from 'n8n-workflow';

import { isRecord } from '../shared/json';
import { ItemFile } from './itemFile';

/** A list's place in a name. Larger numbers are names: nobody means a list with so many empty places. */
const PLACE = /^\d{1,2}$/;

/**
 * Puts a value into an object, as n8n's own Edit Fields does: dots in the name lead into objects, and [0] into lists.
 *
 * @returns the object with the value; nothing of the given one is changed, which may be another node's output
 */
export function withField(object: IDataObject, name: string, value: unknown): IDataObject {
	const changed = put(object, name.match(/[^.[\]]+/g) ?? [], value);
	return isRecord(changed) ? changed : object;
}

function put(target: unknown, [key, ...rest]: string[], value: unknown): unknown {
	if (key === undefined) return value;
	const isObject = isRecord(target) && !(target instanceof ItemFile);
	if (PLACE.test(key) && !isObject) {
		const list: unknown[] = Array.isArray(target) ? [...(target as unknown[])] : [];
		list[Number(key)] = put(list[Number(key)], rest, value);
		// JSON knows no empty places.
		return Array.from(list, (entry) => entry ?? null);
	}
	const object: IDataObject = isObject ? target : {};
	return { ...object, [key]: put(object[key], rest, value) };
}
