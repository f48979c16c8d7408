/** Who is invited and has not joined yet. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import type { InvitationJson } from "../../../../../gen/tessera/v1/organization_pb.js";
import { organizations } from "../../api/clients.ts";
import { messageOf } from "../../api/errors.ts";
import { invitationsOf, roleName } from "../../api/members.ts";
import { useOrganization } from "../../api/session.ts";
import { Button } from "../../ui/button.tsx";
import { DataTable } from "../../ui/data-table.tsx";
import { Time } from "../../ui/time.tsx";
import { useToast } from "../../ui/toasts.tsx";

export function Invitations() {
  const organization = useOrganization();
  const { data: invitations = [] } = useQuery(invitationsOf(organization));
  if (invitations.length === 0) {
    return null;
  }
  return (
    <section aria-labelledby="invitations">
      <h2 id="invitations">Invited</h2>
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
