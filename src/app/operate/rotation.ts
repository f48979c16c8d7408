/**
 * A rotation of the platform's keys: new ones come first, the old ones stay
 * behind them, so that everything made with them is still verified and opened;
 * then every sealed value is sealed again. Digests of tokens move to the new
 * key by themselves, each when its token is used next.
 *
 * No node may make anything with a key that another node does not know: that
 * one would refuse it. Nodes that share a file of keys are told to read it
 * again, before anything is sealed. Keys in the environment are added behind
 * the current ones on every node first, and only then moved before them.
 */
import { loadKeys, rotateKeys } from "../../auth/keys.ts";
import { rotatedKeys } from "../../auth/keys-file.ts";
import { reseal } from "../../auth/reseal.ts";
import type { Accounts } from "../../storage/accounts/accounts.ts";
import type { Deed } from "../../storage/accounts/deed.ts";
import type { HostingStorage } from "../../storage/hosting/hosting.ts";

/** Where the keys are. */
export type KeyRotation =
  | { readonly path: string }
  /** In the environment, which this program cannot change. */
  | { readonly env: string };

export interface RotationRequest {
  /** Make no new keys, only seal again with the current one. */
  readonly resealOnly: boolean;
  /** There are no nodes that have the keys in a file of their own. */
  readonly oneFile: boolean;
}

interface RotationOptions extends RotationRequest {
  readonly accounts: Accounts;
  readonly hosting: HostingStorage;
  /** Other nodes may use the database. */
  readonly shared: boolean;
  readonly deed: () => Deed;
}

export type Rotated =
  /** Values that were sealed again, and those that no key opens. */
  | { readonly outcome: "rotated"; readonly resealed: number; readonly unreadable: number }
  /** What to set as `TESSERA_KEYS` on every node, one after the other; nothing has changed yet. */
  | { readonly outcome: "to_set"; readonly prepared: string; readonly rotated: string };

/** Throws a message that says what to do. */
export async function rotate(
  keys: KeyRotation,
  { accounts, hosting, shared, deed, resealOnly, oneFile }: RotationOptions,
): Promise<Rotated> {
  if (!resealOnly) {
    if ("env" in keys) {
      return { outcome: "to_set", ...rotatedKeys(keys.env, "TESSERA_KEYS") };
    }
    if (shared && !oneFile) {
      throw new Error(
        `other nodes may share this database, and would not know the new keys: if there are none, or they read this very file, add --one-file; else set TESSERA_KEYS on all of them to the content of ${keys.path}, and rotate with that`,
      );
    }
    rotateKeys(keys.path);
  }
  const ring = loadKeys("path" in keys ? { path: keys.path, create: false } : keys);
  await accounts.announceKeys(deed());
  return { outcome: "rotated", ...(await reseal({ accounts, hosting, keys: ring })) };
}
