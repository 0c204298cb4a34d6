import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { basename, join, resolve } from 'node:path';
import type { ICredentialType, INodeType } from 'n8n-workflow';

const ROOT = resolve(__dirname, '../..');

/** Beside the pictures: of each picture the digest of what it shows. */
export const DIGESTS = join(ROOT, 'docs/images/digests.json');

const load = createRequire(__filename);

function panelOf(file: string, name: string): unknown {
	const classes = load(join(ROOT, file)) as Record<string, new () => ICredentialType | INodeType>;
	const Class = classes[name];
	if (!Class) throw new Error(`${file} has no class ${name}`);
	const panel = new Class();
	return 'description' in panel ? panel.description : panel.properties;
}

/** The description of a node of this package. */
export const nodePanel = (name: string) => panelOf(`nodes/MediaGeneration/${name}.node.ts`, name);

const workflow = (name: string): unknown =>
	JSON.parse(readFileSync(join(ROOT, `examples/${name}.json`), 'utf8'));

/** What the pictures show that are not of an example's canvas, by their names. */
const SHOWN: Record<string, () => unknown> = {
	credential: () => panelOf('credentials/MediaGenerationApi.credentials.ts', 'MediaGenerationApi'),
	'credits-node': () => nodePanel('MediaGenerationCredits'),
	'examples/approval-form': () => workflow('approve-before-you-pay'),
};

/** A digest of what a picture shows: the workflow, or the panel. @param name of the file, without its extension */
export function digestOf(name: string): string {
	const example = basename(name);
	const isExample = existsSync(join(ROOT, `examples/${example}.json`));
	const shown = SHOWN[name] ?? (isExample ? () => workflow(example) : undefined);
	if (shown === undefined) throw new Error(`Nobody says what ${name}.png shows.`);
	return createHash('sha256').update(JSON.stringify(shown())).digest('hex').slice(0, 16);
}

/** The digests as they were when the pictures were taken. */
export function storedDigests(): Record<string, string> {
	if (!existsSync(DIGESTS)) return {};
	return JSON.parse(readFileSync(DIGESTS, 'utf8')) as Record<string, string>;
}
