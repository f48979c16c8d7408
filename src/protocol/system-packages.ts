/**
 * The names of system packages, which authors of services write. They become arguments of apt, so
 * an option, a path, an address or a pattern is refused.
 */

/** System packages that a service may name. */
const MAX_SYSTEM_PACKAGES = 64;

/** Debian policy, 5.6.1 and 5.6.7; apt takes a hyphen at the end for "remove it". */
const NAME = /^[a-z0-9][a-z0-9+.-]{0,126}[a-z0-9+.]$/;
/** Debian policy, 5.6.12. */
const VERSION = /^[0-9][A-Za-z0-9.+:~-]{0,127}$/;

/** Why these are no names of system packages; undefined when they are. */
export function faultOfSystemPackages(names: unknown): string | undefined {
  if (!Array.isArray(names) || names.length > MAX_SYSTEM_PACKAGES) {
    return `packages must be a list of at most ${MAX_SYSTEM_PACKAGES} names of system packages`;
  }
  const odd: unknown = names.find((name) => !isSystemPackage(name));
  return odd === undefined
    ? undefined
    : `packages has ${JSON.stringify(odd)?.slice(0, 100)}, which is no name of a system package such as ffmpeg, nor a name with a version such as ffmpeg=7:5.1.6-0+deb12u1`;
}

function isSystemPackage(given: unknown): boolean {
  if (typeof given !== "string") {
    return false;
  }
  const at = given.indexOf("=");
  return at < 0 ? isPackageName(given) : isRelease(given.slice(0, at), given.slice(at + 1));
}

function isPackageName(name: string): boolean {
  return NAME.test(name);
}

/** Whether these are the name of a package and a version. */
export function isRelease(name: string, version: string): boolean {
  return isPackageName(name) && VERSION.test(version);
}
