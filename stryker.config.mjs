/**
 * Changes the product in one place after the other, and says which changes no test notices:
 * `npm run mutants -- --mutate 'nodes/MediaGeneration/create/*.ts'`.
 */
export default {
  testRunner: 'jest',
  plugins: ['@stryker-mutator/jest-runner'],
  jest: {
    config: {
      ...(await import('./jest.config.js')).default,
      roots: ['<rootDir>/test/unit'],
      // The pages and pictures that it reads are not copied.
      testPathIgnorePatterns: ['/documentation\\.test'],
    },
    // Of the unit tests, which import what they are about.
    enableFindRelatedTests: true,
  },
  // None: to rewrite the real one, Stryker would load TypeScript, and the tests read no tsconfig.
  tsconfigFile: 'none',
  coverageAnalysis: 'perTest',
  // What is computed once, when a file is loaded, would need all tests for each change.
  ignoreStatic: true,
  mutate: ['nodes/MediaGeneration/{callback,create,read}/**/*.ts'],
  concurrency: 2,
  timeoutMS: 5_000,
  ignorePatterns: ['/dist', '/docs/images', '/test/artefacts', '/scripts'],
  tempDirName: 'test/artefacts/mutants',
  reporters: ['progress-append-only', 'clear-text'],
  clearTextReporter: { allowColor: false, logTests: false },
};
