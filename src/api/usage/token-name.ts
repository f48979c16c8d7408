/** Who is told the name of a token that usage is of. */
import type { Member } from "../../server/rpc/engine/caller.ts";
import type { UsedToken } from "../../storage/hosting/usage.ts";

/** The name; empty where it is that of somebody else's personal token, which only admins see. */
export function shownName({ name, owner }: UsedToken, { role, userId }: Member): string {
  return role === "admin" || owner === "organization" || owner === userId ? name : "";
}
