/** How many letters have to be changed, added or left out to make one text of the other (Levenshtein). */
function distance(one: string, other: string): number {
	let row = Array.from({ length: other.length + 1 }, (_, index) => index);
	for (const [index, letter] of [...one].entries()) {
		const next = [index + 1];
		for (const [at, wanted] of [...other].entries()) {
			const [above = 0, before = 0, left = 0] = [row[at + 1], row[at], next[at]];
			next.push(Math.min(above + 1, left + 1, before + (letter === wanted ? 0 : 1)));
		}
		row = next;
	}
	return row[other.length] ?? 0;
}

/** @returns the name that a misspelt name is nearest to; undefined if there are no names */
export function nearest(misspelt: string, names: readonly string[]): string | undefined {
	const plain = misspelt.toLowerCase();
	const far = names.map((name) => ({ name, letters: distance(plain, name.toLowerCase()) }));
	return far.toSorted((one, other) => one.letters - other.letters)[0]?.name;
}
