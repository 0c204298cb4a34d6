import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, relative, resolve } from 'node:path';

import { transformSync } from '@swc/core';
import { type ICredentialType, type INodeType, UnexpectedError } from 'n8n-workflow';

/** The package's node types and its credential type, with modules of their own. */
export interface LoadedNodes {
	mediaGeneration: INodeType;
	mediaGenerationTrigger: INodeType;
	credential: ICredentialType;
}

/** A change of one source file. */
export interface Patch {
	/** The file, as a path from the root of the sources. */
	file: string;
	search: string;
	replacement: string;
}

/** The folder of this version. */
export const ROOT = resolve(__dirname, '../../..');

type Load = (require: (id: string) => unknown, exports: object, module: object) => void;

const OPTIONS = {
	swcrc: false,
	configFile: false,
	jsc: { parser: { syntax: 'typescript' }, target: 'es2022' },
	module: { type: 'commonjs' },
} as const;

/**
 * The sources of the nodes, translated once, and loaded anew for each process that is started. In this way a process
 * that dies takes the modules' memory along, and a mutant needs no copy of the sources.
 */
export class NodeSources {
	private readonly translated = new Map<string, Load>();

	private readonly require = createRequire(__filename);

	/**
	 * @param patches changes of the sources
	 * @param root the folder that has `nodes/` and `credentials/`: this version's where left out
	 * @throws where the text of a patch stands nowhere, or more than once
	 */
	constructor(
		private readonly patches: readonly Patch[] = [],
		private readonly root = ROOT,
	) {
		for (const patch of patches) {
			const count = readFileSync(join(root, patch.file), 'utf8').split(patch.search).length - 1;
			if (count !== 1) {
				throw new UnexpectedError(`${patch.file} has ${count} times: ${patch.search}`);
			}
		}
	}

	load(): LoadedNodes {
		const modules = new Map<string, { exports: object }>();
		const open = (path: string): object => {
			const loaded = modules.get(path);
			if (loaded) return loaded.exports;
			const module = { exports: {} };
			modules.set(path, module);
			const require = (id: string): unknown =>
				id.startsWith('.') ? open(resolve(dirname(path), `${id}.ts`)) : this.require(id);
			this.translate(path)(require, module.exports, module);
			return module.exports;
		};
		const make = (file: string, name: string): unknown => {
			const exported = open(join(this.root, file)) as Record<string, new () => unknown>;
			const Class = exported[name];
			if (!Class) throw new UnexpectedError(`${file} has no ${name}`);
			return new Class();
		};
		const node = (name: string) => make(`nodes/MediaGeneration/${name}.node.ts`, name) as INodeType;
		return {
			mediaGeneration: node('MediaGeneration'),
			mediaGenerationTrigger: node('MediaGenerationTrigger'),
			credential: make(
				'credentials/MediaGenerationApi.credentials.ts',
				'MediaGenerationApi',
			) as ICredentialType,
		};
	}

	private translate(path: string): Load {
		const known = this.translated.get(path);
		if (known) return known;
		const file = relative(this.root, path).replaceAll('\\', '/');
		const source = this.patches
			.filter((patch) => patch.file === file)
			.reduce(
				(text, { search, replacement }) => text.replace(search, () => replacement),
				readFileSync(path, 'utf8'),
			);
		const { code } = transformSync(source, { ...OPTIONS, filename: path });
		const load = new Function('require', 'exports', 'module', code) as Load;
		this.translated.set(path, load);
		return load;
	}
}
