/**
 * Returns all values of a cookie in a `Cookie` header (RFC 6265, section
 * 4.2.1), in order; a name may occur several times.
 */
export function cookieValues(header: string | null | undefined, name: string): string[] {
  const pairs = header?.split(";").map((pair) => pair.trim()) ?? [];
  return pairs
    .filter((pair) => pair.startsWith(`${name}=`))
    .map((pair) => pair.slice(name.length + 1));
}

/** The names of the platform's own cookies, without the prefix that they have over https. */
const PLATFORM_COOKIE = /^(?:__Host-|__Secure-)?tessera_/i;

/** True for a cookie of the platform, which services neither see nor set. */
export function isPlatformCookie(name: string): boolean {
  return PLATFORM_COOKIE.test(name.trim());
}
