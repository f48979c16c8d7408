/** Who is invited and has not joined yet. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import type { InvitationJson } from "../../../../../gen/tessera/v1/organization_pb.js";
import { organizations } from "../../api/clients.ts";
import { messageOf } from "../../api/errors.ts";
import { invitationsOf, roleName } from "../../api/members.ts";
import { useOrganization } from "../../api/session.ts";
import { Button } from "../../ui/button.tsx";
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
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard */}
      <section className="table-box" aria-label="Invitations" tabIndex={0}>
        <table>
          <thead>
            <tr>
              <th scope="col">Address</th>
              <th scope="col">Role</th>
              <th scope="col">By</th>
              <th scope="col">Ends</th>
              <th scope="col">
                <span className="hidden">Actions</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {invitations.map((invitation) => (
              <InvitationRow key={invitation.invitationId} invitation={invitation} />
            ))}
          </tbody>
        </table>
      </section>
    </section>
  );
}

function InvitationRow({ invitation }: { readonly invitation: InvitationJson }) {
  const organization = useOrganization();
  const queryClient = useQueryClient();
  const toast = useToast();
  const { invitationId = "", email, role, createdBy, expiresAt } = invitation;
  const withdraw = () =>
    organizations.deleteInvitation({ organization, invitationId }).then(
      () => {
        void queryClient.invalidateQueries({ queryKey: ["invitations", organization] });
        toast(`The invitation of ${email} is withdrawn`);
      },
      (err: unknown) => toast(messageOf(err)),
    );
  return (
    <tr>
      <th scope="row">{email}</th>
      <td>{roleName(role)}</td>
      <td>{createdBy}</td>
      <td>{expiresAt !== undefined && <Time at={expiresAt} />}</td>
      <td className="actions">
        <Button
          kind="quiet"
          aria-label={`Withdraw the invitation of ${email}`}
          onClick={() => void withdraw()}
        >
          Withdraw
        </Button>
      </td>
    </tr>
  );
}
