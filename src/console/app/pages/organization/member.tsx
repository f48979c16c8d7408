/** What the table of members shows of one; admins change their role and remove them. */
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import type { MemberJson, RoleJson } from "../../../../../gen/tessera/v1/organization_pb.js";
import { organizations } from "../../api/clients.ts";
import { roleName } from "../../api/members.ts";
import { useOrganization, usePerson } from "../../api/session.ts";
import { Button } from "../../ui/button.tsx";
import { Confirm } from "../../ui/confirm.tsx";
import { useToast } from "../../ui/toasts.tsx";
import "./member.css";

interface MemberProps {
  readonly member: MemberJson;
}

export function MemberName({ member: { userId, email = "", displayName } }: MemberProps) {
  const { person } = usePerson();
  const name = displayName || email;
  return (
    <div className="member">
      <span className="avatar" aria-hidden="true">
        {[...name][0]?.toUpperCase()}
      </span>
      <div>
        {name} {userId === person.userId && <span className="badge accent">You</span>}
        {displayName && <span className="secondary">{email}</span>}
      </div>
    </div>
  );
}

interface MemberRoleProps extends MemberProps {
  /** An organization has one at least. */
  readonly isOnlyAdmin: boolean;
}

export function MemberRole({ member, isOnlyAdmin }: MemberRoleProps) {
  const { userId = "", email = "", role } = member;
  const organization = useOrganization();
  const { isAdmin, person } = usePerson();
  const changed = useChanged();
  const [wanted, setWanted] = useState<RoleJson>();
  if (!isAdmin) {
    return roleName(role);
  }
  const article = wanted === "ROLE_ADMIN" ? "an" : "a";
  return (
    <>
      <select
        aria-label={`Role of ${email}`}
        disabled={isOnlyAdmin}
        value={role}
        onChange={(event) => setWanted(event.target.value as RoleJson)}
      >
        <option value="ROLE_MEMBER">member</option>
        <option value="ROLE_ADMIN">admin</option>
      </select>
      {isOnlyAdmin && <span className="secondary">The only admin: make another first.</span>}
      {wanted !== undefined && (
        <Confirm
          title={`Make ${email} ${article} ${roleName(wanted)}?`}
          action={`Make ${roleName(wanted)}`}
          run={() => organizations.updateMember({ organization, userId, role: wanted })}
          onDone={() => {
            setWanted(undefined);
            changed(`${email} is ${article} ${roleName(wanted)} now`);
          }}
          onClose={() => setWanted(undefined)}
        >
          <p>{consequenceOf(wanted, userId === person.userId)}</p>
        </Confirm>
      )}
    </>
  );
}

function consequenceOf(wanted: RoleJson, isSelf: boolean): string {
  if (wanted === "ROLE_ADMIN") {
    return "Admins invite and remove people, change their roles, and see, change and delete all tokens of the organization.";
  }
  return isSelf
    ? "You can no longer manage people and the organization's tokens, and only another admin can give you the role back."
    : "They can no longer manage people and the organization's tokens. Their own tokens stay.";
}

/** Of everybody but the person who looks. */
export function RemoveMember({ member: { userId = "", email = "" } }: MemberProps) {
  const organization = useOrganization();
  const { person } = usePerson();
  const changed = useChanged();
  const [isRemoving, setRemoving] = useState(false);
  if (userId === person.userId) {
    return null;
  }
  return (
    <>
      <Button kind="quiet" aria-label={`Remove ${email}`} onClick={() => setRemoving(true)}>
        Remove
      </Button>
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
    </>
  );
}

/** Reads the members again, and says what has changed. */
function useChanged(): (text: string) => void {
  const organization = useOrganization();
  const queryClient = useQueryClient();
  const toast = useToast();
  return (text) => {
    void queryClient.invalidateQueries({ queryKey: ["members", organization] });
    toast(text);
  };
}
