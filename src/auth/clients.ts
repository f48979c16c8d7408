/**
 * A short description of the program that signed in, from its `User-Agent`
 * header: only words of these tables, so whatever the header holds, nothing of
 * it is stored or shown.
 */

/** The first match names it: most browsers also carry the names of those they descend from. */
const PROGRAMS: readonly (readonly [mark: string, name: string])[] = [
  ["tessera", "Tessera client"],
  ["Edg", "Edge"],
  ["OPR/", "Opera"],
  ["SamsungBrowser/", "Samsung Internet"],
  ["Firefox/", "Firefox"],
  ["FxiOS/", "Firefox"],
  ["CriOS/", "Chrome"],
  ["Chrome/", "Chrome"],
  ["Safari/", "Safari"],
  ["curl/", "curl"],
  ["ython", "Python"],
  ["node", "Node.js"],
  ["Go-http-client", "Go"],
];

const SYSTEMS: readonly (readonly [mark: string, name: string])[] = [
  ["iPhone", "iPhone"],
  ["iPad", "iPad"],
  ["Android", "Android"],
  ["CrOS", "ChromeOS"],
  ["Windows", "Windows"],
  ["Mac OS X", "macOS"],
  ["Linux", "Linux"],
];

/** Characters of the header that are looked at. */
const MAX_USER_AGENT_CHARACTERS = 512;

/** Returns `Firefox on Linux`, `curl`, or an empty text for what it does not know. */
export function describeClient(userAgent: string): string {
  const header = userAgent.slice(0, MAX_USER_AGENT_CHARACTERS);
  const nameIn = (table: typeof PROGRAMS) => table.find(([mark]) => header.includes(mark))?.[1];
  return [nameIn(PROGRAMS), nameIn(SYSTEMS)].filter(Boolean).join(" on ");
}
