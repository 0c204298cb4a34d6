const { cpSync, rmSync, statSync } = require('node:fs');

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

if (require.main === module) void exports.default();
