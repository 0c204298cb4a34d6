/**
 * `npm run identity`: the owner sets `repository.url` and `author` in `package.json`, and this writes the addresses
 * that follow from them into the credential, the codex files and the rest of `package.json`.
 */
import { resolve } from 'node:path';
import { fillIdentity, missingIdentity, repositoryUrl } from './identity';

const ROOT = resolve(__dirname, '../..');

const missing = missingIdentity(ROOT);
for (const file of fillIdentity(ROOT)) console.log(`${file}: ${repositoryUrl(ROOT)}`);
for (const what of missing) console.error(what);
if (missing.length > 0) {
	console.error('Set them in package.json, then run this again. Nothing can be published before.');
	process.exitCode = 1;
}
