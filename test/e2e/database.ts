import { literal, querySqlite, type Row } from '../n8n/database';
import type { N8nProcess } from '../n8n/process';

/** The database of an n8n. In statements, names with capitals are in double quotes. */
export abstract class Database {
	abstract rows(query: string): Promise<Row[]>;

	/** Runs statements, as one transaction: where one of them is refused, none has had an effect. */
	abstract execute(...statements: string[]): Promise<void>;

	/**
	 * From now on the database refuses a write at an event such as `after insert on execution_entity`, where a condition on
	 * `old` and `new` holds.
	 *
	 * @param name by which `forget` ends it
	 */
	abstract refuse(name: string, event: string, when: string, message: string): Promise<void>;

	abstract forget(...names: string[]): Promise<void>;
}

export class SqliteDatabase extends Database {
	/** @param n8n it may have ended */
	constructor(private readonly n8n: () => N8nProcess) {
		super();
	}

	async rows(query: string): Promise<Row[]> {
		return await querySqlite(this.n8n(), query);
	}

	async execute(...statements: string[]): Promise<void> {
		await querySqlite(this.n8n(), ...statements);
	}

	async refuse(name: string, event: string, when: string, message: string): Promise<void> {
		const refusal = `select raise(abort, ${literal(message)})`;
		await this.execute(`create trigger ${name} ${event} when ${when} begin ${refusal}; end`);
	}

	async forget(...names: string[]): Promise<void> {
		await this.execute(...names.map((name) => `drop trigger ${name}`));
	}
}

export class PostgresDatabase extends Database {
	/** @param query runs statements as one transaction, and returns the rows of the last, columns joined by `|` */
	constructor(private readonly query: (statements: string) => string[]) {
		super();
	}

	async rows(query: string): Promise<Row[]> {
		const lines = this.query(`select row_to_json(line) from (${query}) line`);
		return await Promise.resolve(lines.map((line) => JSON.parse(line) as Row));
	}

	async execute(...statements: string[]): Promise<void> {
		await Promise.resolve(this.query(statements.join(';\n')));
	}

	async refuse(name: string, event: string, when: string, message: string): Promise<void> {
		const refusal = `raise exception ${literal(message)}`;
		await this.execute(
			`create function ${name}() returns trigger language plpgsql as $$ begin ${refusal}; return new; end $$`,
			`create trigger ${name} ${event} for each row when (${when}) execute function ${name}()`,
		);
	}

	async forget(...names: string[]): Promise<void> {
		await this.execute(...names.map((name) => `drop function ${name}() cascade`));
	}
}
