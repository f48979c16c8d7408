/** The people of an organization, and who is invited. */

import { useSuspenseQuery } from "@tanstack/react-query";
import { lazy, Suspense, useState } from "react";
import { loaded } from "../../api/loaded.ts";
import { membersOf } from "../../api/members.ts";
import { useOrganization, usePerson } from "../../api/session.ts";
import { Button } from "../../ui/button.tsx";
import { DataTable } from "../../ui/data-table.tsx";
import { Page } from "../../ui/page.tsx";
import { Time } from "../../ui/time.tsx";
import { Invitations } from "./invitations.tsx";
import { MemberName, MemberRole, RemoveMember } from "./member.tsx";

const Invite = lazy(() => loaded(import("./invite.tsx")));

export function Members() {
  const organization = useOrganization();
  const { isAdmin } = usePerson();
  const { data: members } = useSuspenseQuery(membersOf(organization));
  const [isInviting, setInviting] = useState(false);
  return (
    <Page
      title="Members"
      description={
        isAdmin ? "Who deploys here, and who manages it." : "Admins invite people and remove them."
      }
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
          { name: "Role", cell: (member) => <MemberRole member={member} /> },
          {
            name: "Joined",
            cell: ({ joinedAt }) => joinedAt !== undefined && <Time at={joinedAt} />,
          },
        ]}
        actions={isAdmin ? (member) => <RemoveMember member={member} /> : undefined}
      />
      {isAdmin && <Invitations />}
      <Suspense>{isInviting && <Invite onClose={() => setInviting(false)} />}</Suspense>
    </Page>
  );
}
