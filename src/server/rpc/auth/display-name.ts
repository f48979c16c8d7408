/** The method of AuthService by which a person changes their name. */
import type { ServiceImpl } from "@connectrpc/connect";
import type { AuthService } from "../../../../gen/tessera/v1/auth_pb.js";
import { faultOfDisplayName } from "../../../auth/names.ts";
import type { Organizations } from "../../../storage/accounts/organizations.ts";
import type { People } from "../../../storage/accounts/people.ts";
import { actorOf, callerOf, deed, type Sources } from "../engine/caller.ts";
import { toPrincipalMessage } from "../principal-messages.ts";
import { refuse, violationsOf } from "../violations.ts";
import { personOf } from "./session.ts";

export interface DisplayNameOptions extends Sources {
  readonly accounts: Pick<People, "changeDisplayName"> & Pick<Organizations, "findOrganization">;
}

/** The handler of people's names. */
export function displayNameHandlers(
  options: DisplayNameOptions,
): Pick<ServiceImpl<typeof AuthService>, "changeDisplayName"> {
  const { accounts } = options;
  return {
    async changeDisplayName(req, ctx) {
      const person = personOf(ctx);
      refuse(violationsOf({ display_name: faultOfDisplayName(req.displayName) }));
      const displayName = req.displayName.trim();
      const { userId } = person;
      const by = actorOf(callerOf(ctx));
      await accounts.changeDisplayName({ ...deed(by, options), userId, displayName });
      return toPrincipalMessage({ ...person, displayName }, accounts);
    },
  };
}
