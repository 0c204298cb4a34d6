/**
 * For Jest's `toEqual` and `toMatchObject`, `[undefined]` and `[]` are equal. Here lists of different lengths are not equal.
 */
expect.addEqualityTesters([
	(one, other) =>
		Array.isArray(one) && Array.isArray(other) && one.length !== other.length ? false : undefined,
]);
