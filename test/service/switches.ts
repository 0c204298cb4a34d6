import { parseSettings, type Refusal, type Settings } from './settings';

type RefusalSwitch = 'createStatus' | 'readStatus' | 'creditsStatus' | 'mediaStatus';
type AccidentSwitch = 'createLost' | 'readDropped' | 'readCutShort' | 'taskFails';

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
	 * The error answer that is due now, if one is.
	 * @param scope what the uses of a task's own switch are counted by
	 */
	refusal(name: RefusalSwitch, own?: Settings, scope?: () => string): Refusal | undefined {
		const value = this.for(own)[name];
		if (value === undefined) return undefined;
		const due = typeof value === 'number' ? { status: value } : value;
		return this.use(name, due.times, own, scope) ? due : undefined;
	}

	/** Whether an accident, of the connection or of a model, is due now; counted as in {@link refusal}. */
	accident(name: AccidentSwitch, own?: Settings, scope?: () => string): boolean {
		const value = this.for(own)[name];
		if (!value) return false;
		return this.use(name, value === true ? undefined : value.times, own, scope);
	}

	private use(name: string, times = Infinity, own: Settings = {}, scope = () => ''): boolean {
		if (times === Infinity) return true;
		const counter = name in own ? `${name} ${scope()}` : name;
		const used = this.used.get(counter) ?? 0;
		if (used >= times) return false;
		this.used.set(counter, used + 1);
		return true;
	}
}
