/** Shows the tasks as they come in. Everything that users wrote is set as text, never as markup. */

const POLL_MS = 1000;
/** Results of one task that its card has room for. */
const MOST_RESULTS = 4;

const element = (id) => document.getElementById(id);
const cards = new Map();
const number = new Intl.NumberFormat('en', { maximumFractionDigits: 2 });

/** Videos play, without sound, while they are in sight; nothing is loaded before that. */
const inSight = new IntersectionObserver((entries) => {
	const still = matchMedia('(prefers-reduced-motion: reduce)').matches;
	for (const { target, isIntersecting } of entries) {
		if (isIntersecting) {
			if (!target.src) target.src = target.dataset.src;
			if (!still) target.play().catch(() => {});
		} else target.pause();
	}
});

function note(text) {
	const box = document.createElement('span');
	box.className = 'note';
	box.textContent = text;
	return box;
}

function picture(url, prompt) {
	const link = document.createElement('a');
	const image = document.createElement('img');
	Object.assign(link, { href: url, target: '_blank', rel: 'noreferrer', className: 'open' });
	Object.assign(image, { src: url, alt: prompt, loading: 'lazy' });
	image.onerror = () => link.replaceWith(note('This result cannot be shown.'));
	link.append(image);
	return link;
}

function video(url, prompt) {
	const player = document.createElement('video');
	Object.assign(player, { muted: true, loop: true, playsInline: true, controls: true });
	player.dataset.src = url;
	player.setAttribute('aria-label', prompt);
	player.onerror = () => player.replaceWith(note('This result cannot be shown.'));
	inSight.observe(player);
	return player;
}

/** @returns what became of a task's callback, and whether it arrived */
function describeCallback({ state, callback }) {
	const { host, deliveries, status, error } = callback;
	if (deliveries === 0) {
		return [state === 'PENDING' ? `Calls back ${host}` : `Not called back: ${host}`, undefined];
	}
	const tries = deliveries === 1 ? '' : `, ${deliveries} deliveries`;
	const answer = status ?? error;
	if (answer === undefined) return [`Calling back ${host}${tries}`, undefined];
	return [`Called back ${host}: ${answer}${tries}`, status >= 200 && status < 300];
}

/** Shows what became of the callback, which may change after the task is finished. */
function fillCallback(card, task) {
	const line = card.querySelector('.callback');
	line.hidden = !task.callback;
	if (!task.callback) return;
	const [text, arrived] = describeCallback(task);
	line.textContent = text;
	line.title = text;
	line.dataset.arrived = arrived ?? '';
}

function fill(card, task) {
	const part = (name) => card.querySelector(name);
	const { state, prompt, results, creditsConsumed, reserved, error } = task;
	card.dataset.state = state;
	part('.badge').textContent = state;
	part('.credits').textContent =
		state === 'PENDING'
			? `${number.format(reserved)} credits held back`
			: `${number.format(creditsConsumed)} credits`;
	part('.prompt').textContent = prompt || 'No prompt';
	part('.prompt').title = prompt;
	part('.error').hidden = !error;
	part('.error').textContent = error ?? '';
	part('.model').textContent = task.model;
	part('.id').textContent = task.taskId;
	part('time').dateTime = task.createdAt;
	part('time').textContent = new Date(task.createdAt).toLocaleTimeString();
	const show = (url) => (task.kind === 'video' ? video : picture)(url, prompt);
	part('.media').replaceChildren(
		...(state === 'FAILURE'
			? [note('No result: billed at 0.')]
			: results.slice(0, MOST_RESULTS).map(show)),
	);
}

/** Brings the cards in line with the tasks, newest first, touching only those that changed. */
function showTasks(tasks) {
	const list = element('tasks');
	const present = new Set(tasks.map(({ taskId }) => taskId));
	for (const [taskId, { card }] of cards) {
		if (present.has(taskId)) continue;
		card.remove();
		cards.delete(taskId);
	}
	for (const task of tasks.toReversed()) {
		const known = cards.get(task.taskId);
		if (known) fillCallback(known.card, task);
		if (known?.state === task.state) continue;
		const card = known?.card ?? element('card').content.firstElementChild.cloneNode(true);
		fill(card, task);
		fillCallback(card, task);
		if (!known) list.prepend(card);
		cards.set(task.taskId, { card, state: task.state });
	}
}

function show({ url, apiKey, balance, reserved, total, unfinished, settings, tasks }) {
	element('url').textContent = url;
	element('balance').textContent = number.format(balance);
	element('reserved').textContent = number.format(reserved);
	element('total').textContent = number.format(total);
	element('unfinished').textContent = `${number.format(unfinished)} unfinished`;
	const set = Object.entries(settings).map(([name, value]) => `${name} ${JSON.stringify(value)}`);
	element('switches').hidden = set.length === 0;
	element('switches').textContent = `Switches: ${set.join(', ')}`;
	element('curl').textContent = [
		`curl ${url}/api/generate \\`,
		`  -H 'Authorization: Bearer ${apiKey}' \\`,
		`  -H 'Content-Type: application/json' \\`,
		`  -d '{"model":"imagevendor/image-model-2-text-to-image","input":{"prompt":"A lighthouse at dawn"}}'`,
	].join('\n');
	element('empty').hidden = total > 0;
	element('older').hidden = total <= tasks.length;
	element('older').textContent = `The newest ${tasks.length} of ${number.format(total)} tasks.`;
	showTasks(tasks);
}

async function poll() {
	try {
		const response = await fetch('/page/state');
		show(await response.json());
		element('stopped').hidden = true;
	} catch {
		element('stopped').hidden = false;
	}
	setTimeout(poll, POLL_MS);
}

element('copy').addEventListener('click', async () => {
	await navigator.clipboard.writeText(element('curl').textContent);
	element('copy').textContent = 'Copied';
});

poll();
