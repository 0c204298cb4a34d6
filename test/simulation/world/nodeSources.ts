import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, resolve } from 'node:path';

import { transformSync } from '@swc/core';
import type { ICredentialType, INodeType } from 'n8n-workflow';

/** The package's node types and its credential type, with modules of their own. */
interface LoadedNodes {
	mediaGeneration: INodeType;
	mediaGenerationTrigger: INodeType;
	credential: ICredentialType;
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
 * The sources of the nodes, translated once, and loaded anew for each process that is started: a process that dies
 * takes the modules' memory along.
 */
export class NodeSources {
	private readonly translated = new Map<string, Load>();

	private readonly require = createRequire(__filename);

	/**
	 * @param root the folder that has `nodes/` and `credentials/`: this version's where left out
	 * @param change of a source, by its path: a mistake that is made on purpose
	 */
	constructor(
		private readonly root = ROOT,
		private readonly change = (_path: string, text: string) => text,
	) {}

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
		const make = <T>(name: string, file: string): T => {
			const exported = open(join(this.root, file)) as Record<string, new () => T>;
			return new exported[name]!();
		};
		const node = (name: string) => make<INodeType>(name, `nodes/MediaGeneration/${name}.node.ts`);
		return {
			mediaGeneration: node('MediaGeneration'),
			mediaGenerationTrigger: node('MediaGenerationTrigger'),
			credential: make('MediaGenerationApi', 'credentials/MediaGenerationApi.credentials.ts'),
		};
	}

	private translate(path: string): Load {
		const known = this.translated.get(path);
		if (known) return known;
		const text = this.change(path, readFileSync(path, 'utf8'));
		const { code } = transformSync(text, { ...OPTIONS, filename: path });
		const load = new Function('require', 'exports', 'module', code) as Load;
		this.translated.set(path, load);
		return load;
	}
}
