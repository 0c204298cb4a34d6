import { type Fate, parseSettings, type Refusal, type Settings, type When } from './settings';

/** What a client asks of the service. */
type Endpoint = 'create' | 'read' | 'credits' | 'media';

/** The settings of the service, and how often the limited ones were used. */
export class Switches {
	private current: Settings;
	private readonly used = new Map<string, number>();

	constructor(private readonly initial: Settings = {}) {
		this.current = parseSettings(initial);
	}

	/** Merges settings into the present ones; a limited switch that is set again starts over. */
	configure(changes: Settings): void {
		this.current = { ...this.current, ...parseSettings(changes) };
		for (const name of Object.keys(changes)) this.used.delete(name);
	}

	reset(): void {
		this.current = this.initial;
		this.used.clear();
	}

	/** What holds for one task: its own switches over those of the service. */
	for(own: Settings = {}): Settings {
		return { ...this.current, ...own };
	}

	/**
	 * The answer in place of the usual one that is due now, if there is one.
	 * @param scope what the uses of a task's own switch are counted by
	 */
	refusal(endpoint: Endpoint, own?: Settings, scope?: () => string): Refusal | undefined {
		const name = `${endpoint}Status` as const;
		const value = this.for(own)[name];
		if (value === undefined) return undefined;
		const due = typeof value === 'number' ? { status: value } : value;
		return this.isDue(name, due, own, scope) ? due : undefined;
	}

	/** What becomes of the answer that is given now; counted as in {@link refusal}. */
	way(endpoint: Endpoint, own?: Settings, scope?: () => string): { fate?: Fate; everyMs?: number } {
		const name = `${endpoint}Way` as const;
		const value = this.for(own)[name] ?? {};
		const due = typeof value === 'string' ? { fate: value } : value;
		return this.isDue(name, due, own, scope) ? due : {};
	}

	/** Whether a task fails now, although it was to succeed; counted as in {@link refusal}. */
	failure(own?: Settings, scope?: () => string): boolean {
		const value = this.for(own).taskFails;
		if (!value) return false;
		return this.isDue('taskFails', value === true ? {} : value, own, scope);
	}

	private isDue(
		name: string,
		{ after = 0, times = Infinity, every = 1 }: When,
		own: Settings = {},
		scope = () => '',
	): boolean {
		if (after === 0 && times === Infinity && every === 1) return true;
		const counter = name in own ? `${name} ${scope()}` : name;
		const used = (this.used.get(counter) ?? 0) + 1;
		this.used.set(counter, used);
		const nth = used - after;
		return nth > 0 && nth % every === 0 && nth / every <= times;
	}
}
