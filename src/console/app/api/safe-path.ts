/**
 * The path to open after the sign-in, from the address of a page. Always on this server, whose
 * origin is given, whatever the address says: a path that begins with two slashes is another
 * server, and dots in it can come to that (`/.//evil.example`).
 */
export function safePath(next: unknown, own: string): string {
  if (typeof next !== "string" || !next.startsWith("/") || !URL.canParse(next, own)) {
    return "/";
  }
  const { origin, pathname, search, hash } = new URL(next, own);
  return origin === own && !pathname.startsWith("//") ? `${pathname}${search}${hash}` : "/";
}
