/**
 * A denylist of environment variables that a deployment may not set for its
 * workers. The dynamic loader, Node or OpenSSL read them before the permission
 * model is in force, so a deployment could load native code, grant itself
 * permissions, or have files written.
 */
import { EGRESS_SOCKET_VARIABLE } from "../protocol/egress.ts";

/** Prefixes of settings of the loader, the C library, Node and OpenSSL. */
const REFUSED_PREFIXES = ["LD_", "DYLD_", "NODE_", "OPENSSL_", "GLIBC_", "GCONV_", "MALLOC_"];
const ALLOWED = new Set(["NODE_ENV", "NODE_DEBUG", "NODE_TLS_REJECT_UNAUTHORIZED"]);
/** Variables that the node sets for each worker. */
const OWN = new Set(["TMPDIR", "LANG", EGRESS_SOCKET_VARIABLE]);
const NAME = /^[A-Za-z_][A-Za-z0-9_]{0,127}$/;

/**
 * All variables and secrets of a deployment together. Linux starts no process with one that is
 * longer than 128 KiB, or with 2 MiB of them; they are settings, and what is large belongs in
 * a file.
 */
export const MAX_ENVIRONMENT_BYTES = 64 * 1024;

/** The size of all names and values. */
export function environmentBytes(variables: { readonly [name: string]: string }): number {
  return Object.entries(variables).reduce(
    (sum, [name, value]) => sum + name.length + Buffer.byteLength(value),
    0,
  );
}

/** Why a deployment may not set a variable of this name; undefined when it may. */
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
