/** Invites a person by their e-mail address. */
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import type { RoleJson } from "../../../../../gen/tessera/v1/organization_pb.js";
import { organizations } from "../../api/clients.ts";
import { useOrganization } from "../../api/session.ts";
import { Command } from "../../ui/command.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { Field } from "../../ui/field.tsx";
import { formMessage, violationOf } from "../../ui/form.ts";
import { Done, FormActions } from "../../ui/form-actions.tsx";
import { Notice } from "../../ui/notice.tsx";

/** What each role may do. */
const RIGHTS: Partial<Record<RoleJson, string>> = {
  ROLE_MEMBER: "Members deploy, call and read everything here, and have tokens of their own.",
  ROLE_ADMIN:
    "Admins also invite and remove people, change roles, and manage the organization's tokens.",
};

export default function Invite({ onClose }: { onClose(): void }) {
  const organization = useOrganization();
  const queryClient = useQueryClient();
  const [email, setEmail] = useState("");
  const [role, setRole] = useState<RoleJson>("ROLE_MEMBER");
  const inviting = useMutation({
    mutationFn: () => organizations.inviteMember({ organization, email, role }),
    onSuccess: () => queryClient.invalidateQueries({ queryKey: ["invitations", organization] }),
  });
  if (inviting.data) {
    const { url, mailed } = inviting.data;
    return (
      <Dialog title={`${email} is invited`} onClose={onClose}>
        {mailed && <p>The link was sent by mail. It works for 7 days.</p>}
        {url && (
          <>
            <p>Send them this link. It works once, for 7 days, and is not shown again.</p>
            <Command text={url} />
          </>
        )}
        <Done onClose={onClose} />
      </Dialog>
    );
  }
  const message = formMessage(inviting.error, "email");
  return (
    <Dialog title="Invite person" onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          inviting.mutate();
        }}
      >
        <Field label="E-mail address" error={violationOf(inviting.error, "email")}>
          {(control) => (
            <input
              {...control}
              type="email"
              data-autofocus
              required
              autoComplete="off"
              value={email}
              onChange={(event) => setEmail(event.target.value)}
            />
          )}
        </Field>
        <Field label="Role" hint={RIGHTS[role]}>
          {(control) => (
            <select
              {...control}
              value={role}
              onChange={(event) => setRole(event.target.value as RoleJson)}
            >
              <option value="ROLE_MEMBER">member</option>
              <option value="ROLE_ADMIN">admin</option>
            </select>
          )}
        </Field>
        {message && <Notice kind="error">{message}</Notice>}
        <FormActions action="Invite" isBusy={inviting.isPending} onClose={onClose} />
      </form>
    </Dialog>
  );
}
