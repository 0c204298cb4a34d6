import type { ServiceErrorKind } from './serviceError';

interface Explanation {
	kind: ServiceErrorKind;
	/** What happened. */
	what: string;
	/** What to do next. */
	next: string;
}

/** Status codes are not shown in the specification (section 7): these are what HTTP says of them. */
export function explainStatus(statusCode: number, taskId: string | undefined): Explanation {
	if (statusCode >= 300 && statusCode < 400) {
		return {
			kind: 'redirected',
			what: `The service redirects to another address (HTTP ${statusCode})`,
			next: "Enter the final address as the 'Base URL' of the credential. Redirects are not followed, so that the API key goes nowhere else.",
		};
	}
	if (statusCode >= 500 || statusCode === 408) {
		return {
			kind: 'serviceDown',
			what: `The service is not working at the moment (HTTP ${statusCode})`,
			next: 'Try again later. A task that was created goes on at the service: fetch it with the operation Task → Wait.',
		};
	}
	switch (statusCode) {
		case 401:
		case 403:
			return {
				kind: 'unauthorized',
				what: `The service refused the API key (HTTP ${statusCode})`,
				next: "Open the Media Generation credential and paste the API key of your account again. Live keys begin with sk-live-. Check that the 'Base URL' belongs to the same account.",
			};
		case 402:
			return {
				kind: 'noCredits',
				what: 'The account has not enough credits for this task (HTTP 402)',
				next: 'Buy credits at the service, then run the items that are left again. The Media Generation Credits node shows the balance.',
			};
		case 404:
		case 410:
			return taskId === undefined
				? {
						kind: 'notFound',
						what: `The service has no such address (HTTP ${statusCode})`,
						next: "Check the 'Base URL' of the credential: it must be the part before /api/generate.",
					}
				: {
						kind: 'notFound',
						what: `The service knows no task ${taskId} for this account (HTTP ${statusCode})`,
						next: 'Check the task id, and that the credential belongs to the account that created the task.',
					};
		case 429:
			return {
				kind: 'tooManyRequests',
				what: 'The account has too many tasks or requests under way (HTTP 429)',
				next: "Lower 'Max Tasks at the Same Time' in the options, or wait until other tasks of the account are finished.",
			};
		default:
			return {
				kind: 'rejected',
				what: `The service did not accept the request (HTTP ${statusCode})`,
				next: 'Check the model and the input fields of this item against what the service offers.',
			};
	}
}
