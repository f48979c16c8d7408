/** One person of an organization; admins change their role and remove them. */
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import type { MemberJson, RoleJson } from "../../../../../gen/tessera/v1/organization_pb.js";
import { organizations } from "../../api/clients.ts";
import { messageOf } from "../../api/errors.ts";
import { roleName } from "../../api/members.ts";
import { useOrganization, usePerson } from "../../api/session.ts";
import { Button } from "../../ui/button.tsx";
import { Confirm } from "../../ui/confirm.tsx";
import { Time } from "../../ui/time.tsx";
import { useToast } from "../../ui/toasts.tsx";

export function MemberRow({ member }: { readonly member: MemberJson }) {
  const organization = useOrganization();
  const { person, isAdmin } = usePerson();
  const queryClient = useQueryClient();
  const toast = useToast();
  const [isRemoving, setRemoving] = useState(false);
  const { userId = "", email = "", displayName, role, joinedAt } = member;
  const changed = (text: string): void => {
    void queryClient.invalidateQueries({ queryKey: ["members", organization] });
    toast(text);
  };
  const setRole = (wanted: RoleJson) =>
    organizations.updateMember({ organization, userId, role: wanted }).then(
      () => changed(`${email} is ${roleName(wanted)} now`),
      (err: unknown) => changed(messageOf(err)),
    );
  return (
    <tr>
      <th scope="row">
        {displayName || email}
        {displayName && <span className="secondary">{email}</span>}
      </th>
      <td>
        {isAdmin ? (
          <select
            aria-label={`Role of ${email}`}
            value={role}
            onChange={(event) => void setRole(event.target.value as RoleJson)}
          >
            <option value="ROLE_MEMBER">member</option>
            <option value="ROLE_ADMIN">admin</option>
          </select>
        ) : (
          roleName(role)
        )}
      </td>
      <td>{joinedAt !== undefined && <Time at={joinedAt} />}</td>
      {isAdmin && (
        <td className="actions">
          {userId !== person.userId && (
            <Button kind="quiet" aria-label={`Remove ${email}`} onClick={() => setRemoving(true)}>
              Remove
            </Button>
          )}
          {isRemoving && (
            <Confirm
              title={`Remove ${email}?`}
              action="Remove"
              run={() => organizations.removeMember({ organization, userId })}
              onDone={() => {
                setRemoving(false);
                changed(`${email} is removed`);
              }}
              onClose={() => setRemoving(false)}
            >
              <p>Their personal tokens in this organization end at once.</p>
            </Confirm>
          )}
        </td>
      )}
    </tr>
  );
}
