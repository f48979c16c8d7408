/** Addresses that a machine reaches itself by, as addresses bar and servers write them. */
const LOOPBACK = /^(?:localhost|127(?:\.\d+){3}|\[?::1\]?|::ffff:127(?:\.\d+){3})$/;

/**
 * An address that somebody signed in from, in words. A loopback address is this machine where the
 * platform runs on it, which the host of the page says; elsewhere it may be that of a proxy.
 */
export const placeText = (address: string, host: string): string =>
  LOOPBACK.test(address) && LOOPBACK.test(host) ? "this machine" : address;
