import js from '@eslint/js';
import { n8nCommunityNodesPlugin } from '@n8n/eslint-plugin-community-nodes';
import n8nNodesBase from 'eslint-plugin-n8n-nodes-base';
import tseslint from 'typescript-eslint';

/** The rules of one preset of `eslint-plugin-n8n-nodes-base`, whose presets still have the old format. */
const nodesBase = (preset, overrides = {}) => ({
  plugins: { 'n8n-nodes-base': n8nNodesBase },
  rules: { ...n8nNodesBase.configs[preset].rules, ...overrides },
});

export default tseslint.config(
  { ignores: ['dist', 'node_modules', 'coverage', 'release', 'test/artefacts'] },
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
