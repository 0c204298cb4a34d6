/** Section 1, "Prices": US dollars. */
const IMAGE_USD = 0.08;
const VIDEO_SECOND_USD = 0.1025;

/** The specification leaves the worth of a credit open. */
const CREDIT_USD = 0.01;

const DEFAULT_VIDEO_SECONDS = 5;

export type MediaKind = 'image' | 'video';

export const kindOf = (model: string): MediaKind => (/video/i.test(model) ? 'video' : 'image');

/** The length of the video that an input asks for (the specification does not show the field). */
const videoSeconds = ({ duration }: Readonly<Record<string, unknown>>): number =>
	Number(duration) > 0 ? Number(duration) : DEFAULT_VIDEO_SECONDS;

/** Credits as shown: sums of decimal fractions, without the rounding errors of binary ones. */
export const roundCredits = (credits: number): number => Math.round(credits * 1e4) / 1e4;

/** What a task costs when it succeeds (section 1, "Prices"). */
export function priceInCredits(
	model: string,
	input: Readonly<Record<string, unknown>>,
	results: number,
): number {
	const usd = kindOf(model) === 'image' ? IMAGE_USD : VIDEO_SECOND_USD * videoSeconds(input);
	return roundCredits((usd * results) / CREDIT_USD);
}
