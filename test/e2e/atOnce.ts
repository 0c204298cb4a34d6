/** Options of a wait that is suspended at once, with all of its tasks under way. */
export const AT_ONCE = { suspendAfter: 0, maxInFlight: 1_000 };
