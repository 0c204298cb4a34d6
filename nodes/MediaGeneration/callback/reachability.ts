/** Names and addresses that exist only on one machine or in one private network. */
const PRIVATE_HOST =
	/^([^.:]+|.+\.(localhost|local|internal)|(127|10|169\.254|192\.168|172\.(1[6-9]|2\d|3[01]))\.[\d.]+|0\.0\.0\.0|\[(::1?|f[cd].*|fe80:.*)\])$/;

const isPrivate = (url: string) => PRIVATE_HOST.test(new URL(url).hostname);

/**
 * Whether a callback cannot arrive: its address is on a private network, and the service is not (specification,
 * section 6: the address must be reachable by the service, and a local one needs a tunnel).
 *
 * @param callbackUrl a valid URL
 * @param baseUrl the service's address, a valid URL
 */
export function isOutOfReach(callbackUrl: string, baseUrl: string): boolean {
	return isPrivate(callbackUrl) && !isPrivate(baseUrl);
}
