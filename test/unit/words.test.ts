import { resolve } from 'node:path';

import { messagesByFile, panels } from '../words/texts';

const textsOf = (name: string) =>
	panels().flatMap((panel) => (panel.name === name ? panel.texts : []));

describe('the page of all texts', () => {
	it('has labels, choices, hints, notices and what a language model reads', () => {
		const places = textsOf('Media Generation').map(({ place }) => place);
		expect(places).toEqual(
			expect.arrayContaining([
				'Media Generation › Prompt › hint',
				'Media Generation › When to Continue › Wait for Results › name',
				'Media Generation › Options › Dry Run › description',
				'Media Generation › Tool Description › default',
			]),
		);
		expect(textsOf('Media Generation API').map(({ text }) => text)).toContain('Base URL');
		expect(new Set(places).size).toBeGreaterThan(100);
	});

	it('has the messages of the code, and what differs in them as …', () => {
		const messages = messagesByFile(resolve(__dirname, '../..')).flatMap((each) => each.messages);
		expect(messages).toContain('The service charged …….');
		expect(messages.length).toBeGreaterThan(200);
	});
});
