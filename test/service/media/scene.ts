import type { Canvas, Image, SKRSContext2D } from '@napi-rs/canvas';
import { createHash } from 'node:crypto';

import type { DrawJob } from './job';
import { type FittedText, drawable, fit, font } from './text';

/** Numbers from 0 to 1 that a text decides. */
function* numbersFrom(seed: string): Generator<number, never> {
	for (let round = 0; ; round++) {
		for (const byte of createHash('sha256').update(`${round} ${seed}`).digest()) yield byte / 255;
	}
}

interface Glow {
	readonly x: number;
	readonly y: number;
	readonly radius: number;
	readonly colour: string;
	readonly phase: number;
}

/** A picture, or one moment of a video: a background, the prompt in large type and a caption. */
export class Scene {
	private readonly context: SKRSContext2D;
	private readonly hue: number;
	private readonly glows: readonly Glow[];
	private readonly title: FittedText;
	private readonly margin: number;

	constructor(
		private readonly canvas: Canvas,
		private readonly job: DrawJob,
		private readonly background?: Image,
	) {
		const { width, height } = canvas;
		this.context = canvas.getContext('2d');
		this.margin = Math.round(Math.min(width, height) * 0.09);
		const random = numbersFrom(job.seed);
		const next = () => random.next().value;
		this.hue = next() * 360;
		this.glows = Array.from({ length: 5 }, (_, index) => ({
			x: next() * width,
			y: next() * height,
			radius: (0.35 + next() * 0.4) * Math.max(width, height),
			colour: `${(this.hue + 25 + index * 28 + next() * 30) % 360} 85% ${52 + next() * 14}%`,
			phase: next() * 2 * Math.PI,
		}));
		this.title = fit(this.context, drawable(job.title) || 'Untitled', {
			width: width - 2 * this.margin,
			height: height - 4 * this.margin,
			largest: Math.round(Math.min(width, height) * 0.13),
			smallest: Math.round(Math.min(width, height) * 0.03),
		});
	}

	/** Draws the moment `progress`, from 0 to 1; a picture is a moment in which all has arrived. */
	draw(progress: number): void {
		if (this.background) this.drawBackground(this.background, progress);
		else this.drawGradient(progress);
		this.drawShade();
		this.drawTitle(progress);
		this.drawCaption();
	}

	/** The progress of a video, along the lower edge. */
	drawProgress(progress: number): void {
		const { width, height } = this.canvas;
		this.context.fillStyle = 'rgb(255 255 255 / 85%)';
		this.context.fillRect(0, height - 6, width * progress, 6);
	}

	private drawGradient(progress: number): void {
		const { context, hue } = this;
		const { width, height } = this.canvas;
		const base = context.createLinearGradient(0, 0, width * 0.4, height);
		base.addColorStop(0, `hsl(${hue} 70% 42%)`);
		base.addColorStop(1, `hsl(${(hue + 60) % 360} 75% 26%)`);
		context.fillStyle = base;
		context.fillRect(0, 0, width, height);
		for (const { x, y, radius, colour, phase } of this.glows) {
			const angle = phase + progress * Math.PI;
			const [cx, cy] = [x + Math.cos(angle) * radius * 0.3, y + Math.sin(angle) * radius * 0.3];
			const glow = context.createRadialGradient(cx, cy, 0, cx, cy, radius);
			glow.addColorStop(0, `hsl(${colour} / 60%)`);
			glow.addColorStop(1, `hsl(${colour} / 0%)`);
			context.fillStyle = glow;
			context.fillRect(0, 0, width, height);
		}
	}

	/** Covers the canvas with the reference image, coming slowly closer. */
	private drawBackground(image: Image, progress: number): void {
		const { width, height } = this.canvas;
		const cover = Math.max(width / image.width, height / image.height) * (1 + progress * 0.15);
		const [w, h] = [image.width * cover, image.height * cover];
		this.context.drawImage(image, (width - w) / 2, (height - h) / 2, w, h);
	}

	/** Darkens what lies behind the type, so that white is readable on any background. */
	private drawShade(): void {
		const { context, margin, title } = this;
		const { width, height } = this.canvas;
		if (this.background) {
			const top = height - margin * 2.2 - title.lines.length * title.lineHeight;
			context.fillStyle = 'rgb(0 0 0 / 72%)';
			context.fillRect(0, top, width, height - top);
			return;
		}
		const shade = context.createLinearGradient(0, height * 0.25, 0, height);
		shade.addColorStop(0, 'rgb(0 0 0 / 0%)');
		shade.addColorStop(1, 'rgb(0 0 0 / 45%)');
		context.fillStyle = shade;
		context.fillRect(0, 0, width, height);
	}

	/** The lines stand on the caption and, in a video, come in one after the other. */
	private drawTitle(progress: number): void {
		const { context, margin, title } = this;
		const { lines, lineHeight, size } = title;
		const bottom = this.canvas.height - margin * 1.9;
		context.font = font(size, 700);
		context.textBaseline = 'alphabetic';
		context.shadowColor = 'rgb(0 0 0 / 40%)';
		context.shadowBlur = size * 0.25;
		lines.forEach((line, index) => {
			const arrived = Math.min(1, Math.max(0, (progress * 2.5 - index / lines.length) * 2));
			const eased = 1 - (1 - arrived) ** 3;
			context.fillStyle = `rgb(255 255 255 / ${Math.round(eased * 100)}%)`;
			const y = bottom - (lines.length - 1 - index) * lineHeight;
			context.fillText(line, margin + (1 - eased) * -margin, y);
		});
		context.shadowColor = 'transparent';
		context.shadowBlur = 0;
	}

	private drawCaption(): void {
		const { context, margin, job } = this;
		context.font = font(Math.max(12, Math.round(margin * 0.28)), 400);
		context.fillStyle = 'rgb(255 255 255 / 75%)';
		context.fillText(drawable(job.caption), margin, this.canvas.height - margin * 0.85);
	}
}
