import { createRequire } from 'node:module';

import type { IRunExecutionData } from 'n8n-workflow';

/** The library that n8n stores run data with has types for ES modules only. */
const flatted = createRequire(__filename)('flatted') as {
	parse(text: string): unknown;
	stringify(value: unknown): string;
};

/** What n8n's database keeps of an execution. */
export const toStored = (data: IRunExecutionData): string => flatted.stringify(data);

export const fromStored = (text: string): IRunExecutionData =>
	flatted.parse(text) as IRunExecutionData;
