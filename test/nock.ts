import nock from 'nock';

/**
 * nock for one test file: nothing leaves the machine, no answer outlives its test, and Node.js has its own requests
 * back in the end. jest runs many files in one process, and what one of them leaves patched the next one patches again.
 */
beforeAll(() => nock.disableNetConnect());
afterEach(() => nock.cleanAll());
afterAll(() => {
	nock.enableNetConnect();
	nock.restore();
});

export { default } from 'nock';
