const { src, dest, parallel } = require('gulp');

/** Copies what the TypeScript compiler leaves behind: icons and codex files, as bytes, into `dist/`. */
const copy = (pattern) => () => src(pattern, { base: '.', encoding: false }).pipe(dest('dist'));

const icons = copy('{nodes,credentials}/**/*.svg');
const codex = copy('nodes/**/*.node.json');

exports.build = parallel(icons, codex);
