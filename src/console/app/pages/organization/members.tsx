/** The people of an organization, and who is invited. */

import { useQuery, useQueryClient, useSuspenseQuery } from "@tanstack/react-query";
import { lazyRouteComponent } from "@tanstack/react-router";
import { Suspense, useState } from "react";
import type { InvitationJson } from "../../../../../gen/tessera/v1/organization_pb.js";
import { organizations } from "../../api/clients.ts";
import { messageOf } from "../../api/errors.ts";
import { loaded } from "../../api/loaded.ts";
import { invitationsOf, membersOf, roleName } from "../../api/members.ts";
import { useOrganization, usePerson } from "../../api/session.ts";
import { Button } from "../../ui/button.tsx";
import { DataTable } from "../../ui/data-table.tsx";
import { Page } from "../../ui/page.tsx";
import { Time } from "../../ui/time.tsx";
import { useToast } from "../../ui/toasts.tsx";
import { TypedAhead } from "../../ui/typed-ahead.ts";
import { MemberName, MemberRole, RemoveMember } from "./member.tsx";

const Invite = lazyRouteComponent(() => loaded(import("./invite.tsx")));

export function Members() {
  const organization = useOrganization();
  const { isAdmin } = usePerson();
  const { data: members } = useSuspenseQuery(membersOf(organization));
  const [isInviting, setInviting] = useState(false);
  const admins = members.filter(({ role }) => role === "ROLE_ADMIN").length;
  return (
    <Page
      title="Members"
      description={`Members of ${organization} deploy, call and read everything here, and have tokens of their own. Admins also invite and remove people, change roles, and manage the organization's tokens.`}
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
          { name: "Person", cell: (member) => <MemberName member={member} /> },
          {
            name: "Role",
            cell: (member) => (
              <MemberRole
                member={member}
                isOnlyAdmin={admins === 1 && member.role === "ROLE_ADMIN"}
              />
            ),
          },
          {
            name: "Joined",
            cell: ({ joinedAt }) => joinedAt !== undefined && <Time at={joinedAt} />,
          },
        ]}
        actions={isAdmin ? (member) => <RemoveMember member={member} /> : undefined}
      />
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
          { name: "Address", cell: ({ email }) => email },
          { name: "Role", cell: ({ role }) => roleName(role) },
          { name: "By", cell: ({ createdBy }) => createdBy },
          {
            name: "Ends",
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
