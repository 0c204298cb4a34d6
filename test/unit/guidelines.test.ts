import { properties, sourceFiles, textsIn } from './repository';

/** What n8n's UX guidelines ask for and its linter does not check. */

const texts = sourceFiles.flatMap(textsIn);

it('shows examples in placeholders', () => {
	const placeholders = properties
		// That of a collection is the label of its button.
		.filter(({ type, placeholder }) => !/collection$/i.test(type) && placeholder !== undefined)
		.map(({ placeholder }) => placeholder);
	expect(placeholders.length).toBeGreaterThan(5);
	expect(placeholders.filter((placeholder) => !placeholder?.startsWith('e.g. '))).toEqual([]);
});

it('names actions without articles, and with what they act on', () => {
	const actions = properties
		.filter(({ name }) => name === 'operation')
		.flatMap(({ options = [] }) => options)
		.map((option) => ('action' in option ? String(option.action) : ''));
	expect(actions.length).toBeGreaterThan(5);
	expect(actions.filter((action) => /\b(an?|the)\b/i.test(action))).toEqual([]);
	expect(actions.filter((action) => !/\b(image|video|task|credit)\b/.test(action))).toEqual([]);
});

it('frightens nobody with the words error, problem, failure or mistake', () => {
	expect(texts.length).toBeGreaterThan(100);
	// A setting and a field are called as they are called; one choice is to stop as n8n does with an error.
	const theirs =
		/'(On Error|error)'|Settings → On Error → 'Continue \(using error output\)'|^Stop with an Error$/g;
	const own = texts.map((text) => text.replace(theirs, ''));
	expect(own.filter((text) => /\b(error|problem|failure|mistake)s?\b/i.test(text))).toEqual([]);
});

it('puts parameters in messages into single quotation marks', () => {
	const named = texts.filter((text) => /\b[Pp]arameter /.test(text));
	expect(named.length).toBeGreaterThan(5);
	expect(named.filter((text) => !/\b[Pp]arameter '/.test(text))).toEqual([]);
});
