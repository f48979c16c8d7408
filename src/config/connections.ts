/** How many connections a node may have open, by default from how many files its process may. */
import { readFileSync } from "node:fs";

export interface ConnectionsConfig {
  readonly total: number;
  /** From one address. */
  readonly perAddress: number;
}

/**
 * Open connections by default at most: twice the callers that may wait for tasks, of which each
 * holds one, and some 400 MB if all of them do something.
 */
const MAX_CONNECTIONS_BY_DEFAULT = 20_000;

/** The limits that are set, and the defaults for the others. */
export function connectionsConfig(
  set: { readonly total?: number | undefined; readonly perAddress?: number | undefined } = {},
): ConnectionsConfig {
  // The other half is for the database, workers and files.
  const total = set.total ?? Math.min(MAX_CONNECTIONS_BY_DEFAULT, Math.floor(openFiles() / 2));
  return { total, perAddress: Math.min(total, set.perAddress ?? Math.ceil(total / 4)) };
}

/** How many files this process may have open; unbounded where the system does not tell. */
function openFiles(): number {
  try {
    const limits = readFileSync("/proc/self/limits", "utf8");
    return Number(/^Max open files +(\d+)/m.exec(limits)?.[1] ?? Number.POSITIVE_INFINITY);
  } catch {
    // Only Linux has this file.
    return Number.POSITIVE_INFINITY;
  }
}
