/** Calendar check of written times, which `Date.parse` does not make: it reads 2026-11-31 as the day after. */

/** True if a time of RFC 3339 has a day and an hour that exist. */
export function isOnCalendar(text: string): boolean {
  const local = text.slice(0, 19).toUpperCase();
  const timeMs = Date.parse(`${local}Z`);
  return !Number.isNaN(timeMs) && new Date(timeMs).toISOString().startsWith(local);
}
