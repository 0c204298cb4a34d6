import { isObject } from './settings';

/**
 * Fills in a shape, as a switch gives it: a text that is the name of a value becomes that value, and a name within a text
 * becomes the value's text.
 *
 * @param values by name; each name begins with `$`
 */
export function fillIn(shape: unknown, values: Readonly<Record<string, unknown>>): unknown {
	if (Array.isArray(shape)) return shape.map((entry) => fillIn(entry, values));
	if (isObject(shape)) {
		const entries = Object.entries(shape).map(([name, each]) => [name, fillIn(each, values)]);
		return Object.fromEntries(entries);
	}
	if (typeof shape !== 'string') return shape;
	if (shape in values) return values[shape];
	return shape.replace(/\$\w+/g, (name) => (name in values ? String(values[name]) : name));
}
