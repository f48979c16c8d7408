/**
 * Which variables a deployment may set for its workers. Some are read before
 * the permission model is in force, by the loader, by Node or by OpenSSL, and
 * would let whoever deploys load native code, switch permissions on, or have
 * files written; these are refused.
 */

/** Names that begin so are settings of the loader and of OpenSSL. */
const REFUSED_PREFIXES = ["LD_", "DYLD_", "NODE_", "OPENSSL_", "GLIBC_", "GCONV_", "MALLOC_"];
const ALLOWED = new Set(["NODE_ENV", "NODE_DEBUG", "NODE_TLS_REJECT_UNAUTHORIZED"]);
/** Set by the node for each worker. */
const OWN = new Set(["TMPDIR", "LANG"]);
const NAME = /^[A-Za-z_][A-Za-z0-9_]{0,127}$/;

/**
 * What all variables and secrets of a deployment may take together. Linux starts no
 * process with one that is longer than 128 KiB, or with 2 MiB of them; they are
 * settings, and what is large belongs into a file.
 */
export const MAX_ENVIRONMENT_BYTES = 64 * 1024;

/** Of names and values. */
export function environmentBytes(variables: { readonly [name: string]: string }): number {
  return Object.entries(variables).reduce(
    (sum, [name, value]) => sum + name.length + Buffer.byteLength(value),
    0,
  );
}

/** What is wrong with the name of a variable; undefined when a deployment may set it. */
export function variableFault(name: string): string | undefined {
  if (!NAME.test(name)) {
    return "is no name of a variable: letters, digits and underscores, at most 128, no digit first";
  }
  if (OWN.has(name)) {
    return "is set by the platform for each worker";
  }
  const prefix = REFUSED_PREFIXES.find((each) => name.toUpperCase().startsWith(each));
  return prefix !== undefined && !ALLOWED.has(name)
    ? `is read before a worker's limits are in force, so ${prefix}* may not be set`
    : undefined;
}
