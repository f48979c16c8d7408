import { type KeyRing, loadKeys } from "../auth/keys.ts";
import type { DataConfig, DataSecrets } from "../config/start.ts";
import type { Accounts } from "../storage/accounts/accounts.ts";
import { keysPath } from "./data-folder.ts";

/** Loads the platform's keys. One that is set up never makes new ones: they would verify none of its tokens. */
export async function openKeys(
  { dataFolder }: Pick<DataConfig, "dataFolder">,
  { keys }: Pick<DataSecrets, "keys">,
  accounts: Pick<Accounts, "needsSetup">,
): Promise<KeyRing> {
  return keys === undefined
    ? loadKeys({ path: keysPath(dataFolder), create: await accounts.needsSetup() })
    : loadKeys({ env: keys });
}
