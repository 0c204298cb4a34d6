import { newestFirst } from '../../../scripts/weekly/newestN8n';
import { report } from '../../../scripts/weekly/report';

const job = (name: string, conclusion: string) => ({
	name,
	conclusion,
	url: `https://example.org/${name}`,
});

describe('the weekly report', () => {
	it('names every job that did not pass, whatever the job was, and no others', () => {
		const jobs = [
			job('newest', 'failure'),
			job('seeds', 'success'),
			job('night', 'timed_out'),
			job('long', 'skipped'),
			job('report', ''),
		];
		expect(report(jobs)).toBe(
			'- [newest](https://example.org/newest): failure\n- [night](https://example.org/night): timed_out',
		);
	});

	it('says nothing where all pass', () => {
		expect(report([job('seeds', 'success'), job('report', '')])).toBeUndefined();
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
