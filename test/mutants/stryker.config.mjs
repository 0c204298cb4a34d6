export default {
  testRunner: 'jest',
  plugins: ['@stryker-mutator/jest-runner'],
  // jest does not see from the imports which files a test is about: the workflows load the nodes as n8n does.
  jest: { configFile: 'test/mutants/jest.config.js', enableFindRelatedTests: false },
  coverageAnalysis: 'perTest',
  // What is computed once, when a file is loaded, would need all tests for each change.
  ignoreStatic: true,
  concurrency: 2,
  // A process that has run many tests keeps what they loaded, and then collects garbage most of its time.
  maxTestRunnerReuse: 25,
  dryRunTimeoutMinutes: 60,
  timeoutMS: 5_000,
  ignorePatterns: [
    '/dist',
    '/release',
    '/coverage',
    '/docs/images',
    '/test/artefacts',
    '/test/bench',
  ],
  tempDirName: 'test/artefacts/mutants',
  reporters: ['progress-append-only', 'clear-text', 'json'],
  jsonReporter: { fileName: 'test/artefacts/mutants.json' },
  clearTextReporter: { allowColor: false, logTests: false },
};
