const { cpSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } = require('node:fs');

/**
 * What the TypeScript compiler leaves behind: icons, the texts of n8n's node panel, and the schemas from which the editor
 * shows the fields of a node before its first run.
 */
const COPIED = /\.svg$|\.node\.json$|__schema__.*\.json$/;

/** Copies these files into an empty `dist/`, for what an earlier build left would be packed, too. Needs no gulp. */
exports.default = async () => {
	rmSync('dist', { recursive: true, force: true });
	for (const folder of ['nodes', 'credentials']) {
		const filter = (path) => statSync(path).isDirectory() || COPIED.test(path);
		cpSync(folder, `dist/${folder}`, { recursive: true, filter });
	}
};

/** What the compiler writes for other module systems, and for functions that use `this`: none of the sources does. */
const OF_THE_COMPILER = [
	[/^Object\.defineProperty\(exports, "__esModule".*\n/m, ''],
	[/^(?:exports\.\w+ = )+void 0;\n/m, ''],
	[/\(0, (\w+\.\w+)\)(?=[(`])/g, '$1'],
	[/^(?: {4})+/gm, (spaces) => '\t'.repeat(spaces.length / 4)],
];

/** Makes what the compiler has written like the sources: a reviewer compares them. The tarball is smaller, too. */
exports.tidy = async () => {
	const files = readdirSync('dist', { recursive: true, encoding: 'utf8' });
	for (const file of files.filter((name) => name.endsWith('.js'))) {
		let text = readFileSync(`dist/${file}`, 'utf8');
		for (const [pattern, plain] of OF_THE_COMPILER) text = text.replace(pattern, plain);
		writeFileSync(`dist/${file}`, text);
	}
};

if (require.main === module) void exports[process.argv[2] ?? 'default']();
