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
