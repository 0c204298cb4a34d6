const typescript = require('@rollup/plugin-typescript');
const { rollup } = require('@rollup/wasm-node');
const { src, dest, parallel } = require('gulp');
const { format, resolveConfig } = require('prettier');
const { n8n } = require('./package.json');

/** The files that n8n loads, as package.json names them, with their sources. */
const entries = Object.fromEntries(
	[...n8n.nodes, ...n8n.credentials].map((file) => {
		const path = file.replace(/^dist\/(.*)\.js$/, '$1');
		return [path, `${path}.ts`];
	}),
);

/** As the sources are, so that a person can read it. */
const formatted = async (text, filepath) =>
	await format(text, { ...(await resolveConfig(filepath)), filepath });

/**
 * Compiles the sources into one file for each entry, and one for all that the entries share: as many files as there are
 * sources would make the tarball larger by a sixth.
 */
async function code() {
	const bundle = await rollup({
		input: entries,
		external: ['crypto', 'n8n-workflow'],
		plugins: [
			typescript({
				module: 'esnext',
				moduleResolution: 'bundler',
				noEmitOnError: true,
				outDir: 'dist',
			}),
		],
	});
	await bundle.write({
		dir: 'dist',
		format: 'cjs',
		exports: 'named',
		interop: 'esModule',
		generatedCode: { preset: 'es2015', symbols: false },
		// All that is no entry goes into one file beside the nodes.
		manualChunks: (id) => (/\.(node|credentials)\.ts$/.test(id) ? undefined : 'mediaGeneration'),
		chunkFileNames: 'nodes/MediaGeneration/[name].js',
		plugins: [{ renderChunk: (text, { fileName }) => formatted(text, fileName) }],
	});
	await bundle.close();
}

/** Copies what the TypeScript compiler leaves behind, as bytes, into `dist/`. */
const copy = (pattern) => () => src(pattern, { base: '.', encoding: false }).pipe(dest('dist'));

const icons = copy('{nodes,credentials}/**/*.svg');
const codex = copy('nodes/**/*.node.json');
/** From these n8n's editor shows the fields of a node before its first run. */
const schemas = copy('nodes/**/__schema__/**/*.json');

exports.build = parallel(code, icons, codex, schemas);
