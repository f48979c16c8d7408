/** The loopback addresses, as the address bar and servers write them. */
const LOOPBACK = /^(?:localhost|127(?:\.\d+){3}|\[?::1\]?|::ffff:127(?:\.\d+){3})$/;

/**
 * The address that somebody signed in from, in words. A loopback address means this machine only if the
 * page itself was opened at one, for then the platform runs here. Otherwise it may be that of a proxy.
 */
export const placeText = (address: string, host: string): string =>
  LOOPBACK.test(address) && LOOPBACK.test(host) ? "this machine" : address;
