import js from '@eslint/js';
import { n8nCommunityNodesPlugin } from '@n8n/eslint-plugin-community-nodes';
import n8nNodesBase from 'eslint-plugin-n8n-nodes-base';
import regexp from 'eslint-plugin-regexp';
import tseslint from 'typescript-eslint';

/** The rules of one preset of `eslint-plugin-n8n-nodes-base`, whose presets still have the old format. */
const nodesBase = (preset, overrides = {}) => ({
  plugins: { 'n8n-nodes-base': n8nNodesBase },
  rules: { ...n8nNodesBase.configs[preset].rules, ...overrides },
});

const HOUSE = 'nodes/MediaGeneration';

/** What happens to a task, from the ground up: a folder imports its own files and those of the folders before it. */
const FOLDERS = ['shared', 'n8n', 'service', 'report', 'read', 'callback', 'plan', 'create', 'run'];

/** What a folder imports; a folder that is not listed imports nothing of another. */
const IMPORTED = {
  ...Object.fromEntries(FOLDERS.map((folder, index) => [folder, FOLDERS.slice(0, index)])),
  // The panel shows prices, limits and the names of files.
  panel: ['service', 'shared', 'n8n'],
};

/** The files of a folder import only what is allowed there. */
const imports = (folder, regex) => ({
  files: [`${HOUSE}/${folder}*.ts`],
  rules: { 'no-restricted-imports': ['error', { patterns: [{ regex }] }] },
});

/** The folders of the node: in which order they use one another, and how long their files are. */
const architecture = [
  { files: [`${HOUSE}/**/*.ts`], rules: { 'max-lines': ['error', 320] } },
  // No node imports another node.
  imports('', '^\\./[^/]+$|^\\.\\./'),
  imports('*/**/', '^\\.\\./'),
  ...Object.entries(IMPORTED).map(([folder, others]) =>
    imports(`${folder}/**/`, `^\\.\\./(?!(${others.join('|')})/)`),
  ),
];

export default tseslint.config(
  { ignores: ['dist', 'test/artefacts'] },
  { linterOptions: { reportUnusedDisableDirectives: 'error' } },
  {
    files: ['**/*.ts'],
    extends: [js.configs.recommended, ...tseslint.configs.recommended],
    rules: {
      '@typescript-eslint/no-explicit-any': 'error',
      '@typescript-eslint/consistent-type-imports': 'error',
      '@typescript-eslint/no-unused-vars': ['error', { ignoreRestSiblings: true }],
      eqeqeq: 'error',
    },
  },
  {
    files: ['test/**/*.test.ts'],
    rules: {
      'no-restricted-imports': [
        'error',
        { name: 'nock', message: 'Import test/nock, which gives Node.js its own requests back.' },
      ],
    },
  },
  ...architecture,
  // n8n does all its work in one thread: an expression that takes the square of a text's length holds it up for seconds.
  {
    files: ['nodes/**/*.ts', 'credentials/**/*.ts'],
    extends: [regexp.configs['flat/recommended']],
    rules: {
      'regexp/no-unused-capturing-group': 'off',
      'regexp/no-super-linear-backtracking': ['error', { report: 'potential' }],
      'regexp/no-super-linear-move': ['error', { report: 'potential' }],
      // These rules look at literals only.
      'no-restricted-syntax': ['error', '[callee.name="RegExp"]'],
    },
  },
  // What ships is held to n8n's own rules, without exception.
  {
    files: ['nodes/**/*.ts', 'credentials/**/*.ts', 'package.json'],
    extends: [n8nCommunityNodesPlugin.configs.recommended],
    linterOptions: { noInlineConfig: true },
  },
  // Off are only those of its rules that contradict the newer community rules, as in n8n's own configuration.
  {
    files: ['nodes/**/*.ts'],
    ...nodesBase('nodes', {
      'n8n-nodes-base/node-class-description-inputs-wrong-regular-node': 'off',
      'n8n-nodes-base/node-class-description-outputs-wrong': 'off',
    }),
  },
  {
    files: ['credentials/**/*.ts'],
    ...nodesBase('credentials', {
      'n8n-nodes-base/cred-class-field-documentation-url-miscased': 'off',
    }),
  },
  {
    files: ['package.json'],
    ...nodesBase('community'),
    languageOptions: { parser: tseslint.parser, parserOptions: { extraFileExtensions: ['.json'] } },
  },
);
