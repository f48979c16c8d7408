/** Gives a token a new value; the old one stays valid for a while. */
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { tokens } from "../../api/clients.ts";
import { messageOf } from "../../api/errors.ts";
import { useOrganization } from "../../api/session.ts";
import { Dialog } from "../../ui/dialog.tsx";
import { Field } from "../../ui/field.tsx";
import { Done, FormActions } from "../../ui/form-actions.tsx";
import { isolated } from "../../ui/isolated.ts";
import { Notice } from "../../ui/notice.tsx";
import type { TokenDialogProps } from "./fields.tsx";
import { TokenValue } from "./value.tsx";

/** How long the old value may stay valid; the API allows 7 days. */
const GRACES = [
  ["", "It ends now"],
  ["3600s", "For an hour"],
  ["86400s", "For a day"],
  ["604800s", "For 7 days"],
] as const;

export default function RotateToken({ token, onClose }: TokenDialogProps) {
  const organization = useOrganization();
  const queryClient = useQueryClient();
  const [grace, setGrace] = useState("86400s");
  const rotating = useMutation({
    mutationFn: () =>
      tokens.rotateToken({
        organization,
        tokenId: token.tokenId ?? "",
        ...(grace !== "" && { grace }),
      }),
    onSuccess: () => queryClient.invalidateQueries({ queryKey: ["tokens", organization] }),
  });
  if (rotating.data) {
    return (
      <Dialog title={`${isolated(token.name)} has a new value`} onClose={onClose}>
        <TokenValue token={rotating.data.token ?? token} value={rotating.data.value ?? ""} />
        <Done onClose={onClose} />
      </Dialog>
    );
  }
  return (
    <Dialog title={`Rotate ${token.name}`} onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          rotating.mutate();
        }}
      >
        <p>The token gets a new value and keeps its name, access and expiry.</p>
        <Field label="The old value stays valid">
          {(control) => (
            <select {...control} value={grace} onChange={(event) => setGrace(event.target.value)}>
              {GRACES.map(([value, label]) => (
                <option key={value} value={value}>
                  {label}
                </option>
              ))}
            </select>
          )}
        </Field>
        {rotating.error && <Notice kind="error">{messageOf(rotating.error)}</Notice>}
        <FormActions action="Rotate" isBusy={rotating.isPending} onClose={onClose} />
      </form>
    </Dialog>
  );
}
