/** The people of an organization, and who is invited. */
import { useQuery, useQueryClient, useSuspenseQuery } from "@tanstack/react-query";
import { lazyRouteComponent } from "@tanstack/react-router";
import { Suspense, useState } from "react";
import type {
  InvitationJson,
  MemberJson,
  RoleJson,
} from "../../../../../gen/tessera/v1/organization_pb.js";
import { organizations } from "../../api/clients.ts";
import { messageOf } from "../../api/errors.ts";
import { loaded } from "../../api/loaded.ts";
import { invitationsOf, membersOf, roleName } from "../../api/members.ts";
import { useOrganization, usePerson } from "../../api/session.ts";
import { Button } from "../../ui/button.tsx";
import { Confirm } from "../../ui/confirm.tsx";
import { DataTable } from "../../ui/data-table.tsx";
import { Page } from "../../ui/page.tsx";
import { Time } from "../../ui/time.tsx";
import { useToast } from "../../ui/toasts.tsx";
import { TypedAhead } from "../../ui/typed-ahead.ts";
import "./member.css";

const Invite = lazyRouteComponent(() => loaded(import("./invite.tsx")));

export function Members() {
  const organization = useOrganization();
  const { isAdmin } = usePerson();
  const { data: members } = useSuspenseQuery(membersOf(organization));
  const [isInviting, setInviting] = useState(false);
  const admins = members.filter(({ role }) => role === "ROLE_ADMIN");
  const isAlone = members.length === 1;
  const isOnlyAdmin = ({ userId }: MemberJson): boolean =>
    admins.length === 1 && admins[0]?.userId === userId;
  return (
    <Page
      title="Members"
      description={`People of ${organization}. Members deploy, call and read; admins also manage people and tokens.`}
      actions={
        isAdmin ? (
          <Button kind="primary" onClick={() => setInviting(true)}>
            Invite
          </Button>
        ) : undefined
      }
    >
      <DataTable
        label="Members"
        items={members}
        keyOf={({ userId = "" }) => userId}
        columns={[
          {
            ...{ name: "Person", grows: true },
            cell: (member) => (
              <MemberName member={member} isKept={isOnlyAdmin(member) && !isAlone} />
            ),
          },
          {
            ...{ name: "Role", narrow: "beside" },
            cell: (member) => <MemberRole member={member} isOnlyAdmin={isOnlyAdmin(member)} />,
          },
          {
            name: "Joined",
            cell: ({ joinedAt }) => joinedAt !== undefined && <Time at={joinedAt} />,
          },
        ]}
        actions={isAdmin ? (member) => <RemoveMember member={member} /> : undefined}
      />
      {isAdmin && isAlone && (
        <p className="secondary table-note">
          You are alone in {organization}. Invite those who deploy and call with you: each has
          sessions and tokens of their own.
        </p>
      )}
      {isAdmin && <Invitations />}
      <Suspense fallback={<TypedAhead />}>
        {isInviting && <Invite onClose={() => setInviting(false)} />}
      </Suspense>
    </Page>
  );
}

/** Who is invited and has not joined yet. */
function Invitations() {
  const organization = useOrganization();
  const { data: invitations = [] } = useQuery(invitationsOf(organization));
  if (invitations.length === 0) {
    return null;
  }
  return (
    <section aria-labelledby="invitations">
      <h2 id="invitations">Pending invitations</h2>
      <DataTable
        label="Invitations"
        items={invitations}
        keyOf={({ invitationId = "" }) => invitationId}
        columns={[
          { name: "Address", grows: true, cell: ({ email }) => email },
          {
            ...{ name: "Role", narrow: "beside" },
            cell: ({ role }) => <span className="badge">{roleName(role)}</span>,
          },
          { name: "By", cell: ({ createdBy }) => createdBy },
          {
            name: "Expires",
            cell: ({ expiresAt }) => expiresAt !== undefined && <Time at={expiresAt} />,
          },
        ]}
        actions={(invitation) => <Withdraw invitation={invitation} />}
      />
    </section>
  );
}

function Withdraw({ invitation }: { readonly invitation: InvitationJson }) {
  const organization = useOrganization();
  const queryClient = useQueryClient();
  const toast = useToast();
  const { invitationId = "", email } = invitation;
  const withdraw = () =>
    organizations.deleteInvitation({ organization, invitationId }).then(
      () => {
        void queryClient.invalidateQueries({ queryKey: ["invitations", organization] });
        toast(`The invitation of ${email} is withdrawn`);
      },
      (err: unknown) => toast(messageOf(err)),
    );
  return (
    <Button
      kind="quiet"
      aria-label={`Withdraw the invitation of ${email}`}
      onClick={() => void withdraw()}
    >
      Withdraw
    </Button>
  );
}

/** What the table of members shows of one; admins change their role and remove them. */
interface MemberProps {
  readonly member: MemberJson;
}

interface MemberRoleProps extends MemberProps {
  /** An organization has one at least. */
  readonly isOnlyAdmin: boolean;
}

interface MemberNameProps extends MemberProps {
  /** The only admin among several people, whose role stays for that. */
  readonly isKept: boolean;
}

function MemberName({ member: { userId, email = "", displayName }, isKept }: MemberNameProps) {
  const { isAdmin, person } = usePerson();
  const name = displayName || email;
  return (
    <div className="member">
      <span className="avatar" aria-hidden="true">
        {[...name][0]?.toUpperCase()}
      </span>
      <div>
        {name} {userId === person.userId && <span className="badge accent">You</span>}
        {displayName && <span className="secondary">{email}</span>}
        {isAdmin && isKept && (
          <span className="secondary">To step down, make somebody else admin first.</span>
        )}
      </div>
    </div>
  );
}

function MemberRole({ member, isOnlyAdmin }: MemberRoleProps) {
  const { userId = "", email = "", role } = member;
  const organization = useOrganization();
  const { isAdmin, person } = usePerson();
  const changed = useChanged();
  const [wanted, setWanted] = useState<RoleJson>();
  if (!isAdmin || isOnlyAdmin) {
    return <span className="badge">{roleName(role)}</span>;
  }
  const article = wanted === "ROLE_ADMIN" ? "an" : "a";
  return (
    <>
      <select
        aria-label={`Role of ${email}`}
        value={role}
        onChange={(event) => setWanted(event.target.value as RoleJson)}
      >
        <option value="ROLE_MEMBER">member</option>
        <option value="ROLE_ADMIN">admin</option>
      </select>
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
function RemoveMember({ member: { userId = "", email = "" } }: MemberProps) {
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
