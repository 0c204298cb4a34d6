const { rmSync } = require('node:fs');
const { src, dest, parallel } = require('gulp');

/** Copies what the TypeScript compiler leaves behind, as bytes, into `dist/`. */
const copy = (pattern) => () => src(pattern, { base: '.', encoding: false }).pipe(dest('dist'));

const icons = copy('{nodes,credentials}/**/*.svg');
const codex = copy('nodes/**/*.node.json');
/** From these n8n's editor shows the fields of a node before its first run. */
const schemas = copy('nodes/**/__schema__/**/*.json');

/** What an earlier build left would be packed, too. */
exports.clean = async () => rmSync('dist', { recursive: true, force: true });
exports.default = parallel(icons, codex, schemas);
