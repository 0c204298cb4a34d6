import { readFileSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';

/** Code is shown as it is: what looks like a link or a heading there is none. */
const withoutCode = (text: string) => text.replace(/^```.*?^```/gms, '').replace(/`[^`\n]*`/g, '');

/** The anchors of a page's headings, as GitHub and npm make them: a second one of the same name gets `-1`. */
export function anchorsOf(page: string): string[] {
	const seen = new Map<string, number>();
	const text = page.replace(/^```.*?^```/gms, '');
	return [...text.matchAll(/^#{1,6} +(.+)$/gm)].map(([, heading = '']) => {
		const anchor = heading
			.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
			.trim()
			.toLowerCase()
			.replace(/[^\p{L}\p{N}\s_-]/gu, '')
			.replace(/\s/g, '-');
		const before = seen.get(anchor) ?? 0;
		seen.set(anchor, before + 1);
		return before === 0 ? anchor : `${anchor}-${before}`;
	});
}

/** Where the links and pictures of a page lead, as Markdown and as HTML. */
export function targetsOf(page: string): string[] {
	const text = withoutCode(page);
	return [
		...text.matchAll(/\]\(<?([^)\s>]+)>?(?: "[^"]*")?\)/g),
		...text.matchAll(/<(?:a|img|source)\b[^>]*?\b(?:href|src|srcset)="([^"]+)"/g),
	].map(([, target = '']) => target);
}

/**
 * The links of a page that lead nowhere.
 *
 * @param root the repository's folder
 * @param page the page, relative to it
 * @param exists whether there is a file, relative to the folder
 */
export function brokenLinks(
	root: string,
	page: string,
	exists: (file: string) => boolean,
): string[] {
	const read = (file: string) => readFileSync(join(root, file), 'utf8');
	return targetsOf(read(page)).filter((target) => {
		if (/^[a-z]+:/i.test(target)) return false;
		const [path = '', anchor] = decodeURIComponent(target).split('#', 2);
		const file = path === '' ? page : posix.join(dirname(page).replaceAll('\\', '/'), path);
		if (!exists(file)) return true;
		return anchor !== undefined && file.endsWith('.md') && !anchorsOf(read(file)).includes(anchor);
	});
}
