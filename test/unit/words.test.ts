import { pageOfTexts } from '../words/texts';

const lines = pageOfTexts();

describe('the page of all texts', () => {
	it.each([
		'Media Generation API › Base URL › displayName: Base URL',
		'Media Generation › Prompt › hint: ',
		'Media Generation › When to Continue › Wait for Results › name: ',
		'Media Generation › Options › Dry Run › description: ',
		'Media Generation › Tool Description › default: ',
	])('has labels, choices, hints and what a language model reads: %s', (text) => {
		expect(lines).toContainEqual(expect.stringContaining(`- ${text}`));
	});

	it('has the messages of the code, and what differs in them as …', () => {
		const messages = lines.slice(lines.indexOf('## What the code says'));
		expect(messages).toContain('- The service charged …….');
		expect(messages.length).toBeGreaterThan(200);
	});
});
