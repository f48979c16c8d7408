/**
 * Which origins the author of a service lets call it. The pattern comes from the author and the
 * origin from anybody, so a match has a limit of time; a pattern that has exceeded it once is
 * matched no more.
 */
import type { CorsManifest } from "../protocol/manifest.ts";
import { withinTime } from "./input/time-limit.ts";

/** How long one match of an origin may take. */
const ORIGIN_MATCH_TIMEOUT_MS = 10;

/** Longest origin that is looked at. */
const MAX_ORIGIN_CHARACTERS = 255;

/** Origins whose match is remembered, of each service. */
const MAX_KNOWN_ORIGINS = 256;

/** Matches by origin; undefined where the pattern is too slow. */
const known = new WeakMap<CorsManifest, Map<string, boolean> | undefined>();

/** Whether pages of this origin may call. */
export function letsOrigin(cors: CorsManifest, origin: string): boolean {
  return (
    cors.origins.includes("*") ||
    cors.origins.includes(origin) ||
    (cors.originPattern !== undefined &&
      origin.length <= MAX_ORIGIN_CHARACTERS &&
      matches(cors, cors.originPattern, origin))
  );
}

function matches(cors: CorsManifest, pattern: string, origin: string): boolean {
  const matched = known.has(cors) ? known.get(cors) : new Map<string, boolean>();
  const before = matched?.get(origin);
  if (matched === undefined || before !== undefined) {
    return before ?? false;
  }
  const whole = new RegExp(`^(?:${pattern})$`);
  const found = withinTime(ORIGIN_MATCH_TIMEOUT_MS, () => whole.test(origin));
  if (matched.size >= MAX_KNOWN_ORIGINS) {
    matched.clear();
  }
  matched.set(origin, found?.result ?? false);
  known.set(cors, found === undefined ? undefined : matched);
  return found?.result ?? false;
}
