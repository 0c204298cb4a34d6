import { ServiceError } from '../service/serviceError';

/**
 * Whether a create that failed may be sent again: where the first certainly did not make a task. Everything else would
 * be paid for twice if it did.
 *
 * @param error what became of the first
 * @see specification, section 7
 */
export function maySendAgain(error: unknown): error is ServiceError {
	return error instanceof ServiceError && error.certainlyNotTaken;
}

/** Whether a create without a good answer may have made a task all the same. */
export function mayHaveBeenTaken(error: ServiceError): boolean {
	const { kind } = error;
	return (
		(kind === 'noAnswer' ||
			kind === 'serviceDown' ||
			kind === 'unexpectedAnswer' ||
			kind === 'cancelled' ||
			error.isSeeOther) &&
		!maySendAgain(error)
	);
}

/** Whether the service may be in trouble that other creates would run into as well. */
export function isDoubtful(error: unknown): error is ServiceError {
	return error instanceof ServiceError && error.kind !== 'cancelled' && mayHaveBeenTaken(error);
}
