/** Shows the value of an organization's token again, after the admin has confirmed their presence. */
import { useMutation } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { auth, tokens } from "../../api/clients.ts";
import { CallError, messageOf } from "../../api/errors.ts";
import { useOrganization } from "../../api/session.ts";
import { Dialog } from "../../ui/dialog.tsx";
import { Field } from "../../ui/field.tsx";
import { FormActions } from "../../ui/form-actions.tsx";
import { Notice } from "../../ui/notice.tsx";
import type { TokenDialogProps } from "./fields.tsx";
import { TokenValue } from "./value.tsx";

export default function RevealToken({ token, onClose }: TokenDialogProps) {
  const organization = useOrganization();
  const [password, setPassword] = useState("");
  const { mutate, ...revealing } = useMutation({
    mutationFn: async (confirmation: string | undefined) => {
      if (confirmation !== undefined) {
        await auth.confirmPassword({ password: confirmation });
      }
      return tokens.revealToken({ organization, tokenId: token.tokenId ?? "" });
    },
  });
  useEffect(() => mutate(undefined), [mutate]);
  const needsSignIn =
    revealing.error instanceof CallError &&
    ["SIGN_IN_REQUIRED", "SIGN_IN_FAILED"].includes(revealing.error.reason);
  return (
    <Dialog title={`The value of ${token.name}`} onClose={onClose}>
      {revealing.data && <TokenValue token={token} value={revealing.data.value ?? ""} />}
      {revealing.error && <Notice kind="error">{messageOf(revealing.error)}</Notice>}
      {needsSignIn && (
        <form
          onSubmit={(event) => {
            event.preventDefault();
            mutate(password);
          }}
        >
          <Field label="Your password" hint="Confirms that it is you. The audit log records it.">
            {(control) => (
              <input
                {...control}
                type="password"
                autoComplete="current-password"
                required
                value={password}
                onChange={(event) => setPassword(event.target.value)}
              />
            )}
          </Field>
          <p className="hint">
            Without a password,{" "}
            <a
              href={`/auth/oidc/start?${new URLSearchParams({ next: location.pathname, confirm: "true" })}`}
            >
              confirm with your provider
            </a>
            .
          </p>
          <FormActions action="Show" isBusy={revealing.isPending} onClose={onClose} />
        </form>
      )}
    </Dialog>
  );
}
