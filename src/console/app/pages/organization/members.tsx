/** The people of an organization, and who is invited. */
import { useSuspenseQuery } from "@tanstack/react-query";
import { lazy, Suspense, useState } from "react";
import { membersOf } from "../../api/members.ts";
import { useOrganization, usePerson } from "../../api/session.ts";
import { Button } from "../../ui/button.tsx";
import { Page } from "../../ui/page.tsx";
import { Invitations } from "./invitations.tsx";
import { MemberRow } from "./member-row.tsx";

const Invite = lazy(() => import("./invite.tsx"));

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
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard */}
      <section className="table-box" aria-label="Members" tabIndex={0}>
        <table>
          <thead>
            <tr>
              <th scope="col">Person</th>
              <th scope="col">Role</th>
              <th scope="col">Joined</th>
              {isAdmin && (
                <th scope="col">
                  <span className="hidden">Actions</span>
                </th>
              )}
            </tr>
          </thead>
          <tbody>
            {members.map((member) => (
              <MemberRow key={member.userId} member={member} />
            ))}
          </tbody>
        </table>
      </section>
      {isAdmin && <Invitations />}
      <Suspense>{isInviting && <Invite onClose={() => setInviting(false)} />}</Suspense>
    </Page>
  );
}
