const { mkdir, writeFile } = require('node:fs/promises');
const { dirname } = require('node:path');
const { src, dest, parallel } = require('gulp');

/** Copies what the TypeScript compiler leaves behind: icons and codex files, as bytes, into `dist/`. */
const copy = (pattern) => () => src(pattern, { base: '.', encoding: false }).pipe(dest('dist'));

const icons = copy('{nodes,credentials}/**/*.svg');
const codex = copy('nodes/**/*.node.json');

/** Writes the files from which n8n's editor shows the fields of a node before its first run. */
async function schemas() {
	const nodes = './dist/nodes/MediaGeneration';
	const { outputSchemas } = require(`${nodes}/fields/outputSchema.js`);
	for (const [path, schema] of Object.entries(outputSchemas)) {
		const file = `${nodes}/__schema__/${path}.json`;
		await mkdir(dirname(file), { recursive: true });
		await writeFile(file, JSON.stringify({ ...schema, version: 1 }));
	}
}

exports.build = parallel(icons, codex, schemas);
