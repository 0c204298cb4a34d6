import { newestFirst } from '../../../scripts/weekly/newestN8n';
import { type JestResults, report } from '../../../scripts/weekly/report';
const results = (...tests: Array<[name: string, status: string]>): JestResults => ({
	testResults: [
		{
			name: '/home/runner/work/test/e2e/money.test.ts',
			status: tests.some(([, status]) => status === 'failed') ? 'failed' : 'passed',
			assertionResults: tests.map(([fullName, status]) => ({ fullName, status })),
		},
	],
});

describe('the weekly report', () => {
	it('names the failing tests of each version, and no others', () => {
		expect(
			report({
				newest: results(['a batch is paid once', 'failed'], ['a retry is free', 'passed']),
				'2.41.1': results(['a batch is paid once', 'passed']),
			}),
		).toBe('### n8n newest\n\n- money.test.ts: a batch is paid once');
	});

	it('says nothing where nothing fails', () => {
		expect(report({ newest: results(['a', 'passed'], ['b', 'pending']) })).toBeUndefined();
	});

	it('takes no results, and a file that did not run, for what they are', () => {
		const broken = results();
		broken.testResults[0]!.status = 'failed';
		expect(report({ newest: undefined, '2.41.1': broken })).toBe(
			'### n8n newest\n\n- left no results\n\n### n8n 2.41.1\n\n- money.test.ts: did not run',
		);
	});
});

test('the newest version is found by its numbers, and only among those that are released', () => {
	expect(newestFirst(['2.9.0', '2.41.1', '2.100.0', '2.101.0-beta.1', '1.123.81'])).toEqual([
		'2.100.0',
		'2.41.1',
		'2.9.0',
		'1.123.81',
	]);
});
