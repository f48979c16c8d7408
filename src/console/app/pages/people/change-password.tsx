/** Sets another password, and says what ended with it and what did not. */
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import type { ChangePasswordResponseJson } from "../../../../../gen/tessera/v1/auth_pb.js";
import { auth } from "../../api/clients.ts";
import { FieldsForm, textOf } from "../../ui/fields-form.tsx";
import { Notice } from "../../ui/notice.tsx";

export function ChangePassword({ email }: { readonly email: string }) {
  const queryClient = useQueryClient();
  const [changed, setChanged] = useState<ChangePasswordResponseJson>();
  if (changed !== undefined) {
    return <Changed changed={changed} />;
  }
  return (
    <FieldsForm
      fields={[
        {
          name: "current_password",
          label: "Current password",
          type: "password",
          autoComplete: "current-password",
        },
        {
          name: "new_password",
          label: "New password",
          type: "password",
          hint: "At least 10 characters. Your sessions in other browsers end.",
          autoComplete: "new-password",
          minLength: 10,
        },
      ]}
      submit="Change password"
      needsChange
      send={(values) =>
        auth.changePassword({
          currentPassword: textOf(values, "current_password"),
          newPassword: textOf(values, "new_password"),
          revokeTokens: values.has("revoke_tokens"),
        })
      }
      onDone={(answer) => {
        setChanged(answer);
        void queryClient.invalidateQueries({ queryKey: ["sessions"] });
      }}
    >
      {/* Password managers keep the new password with this name. */}
      <input hidden autoComplete="username" readOnly value={email} />
      <label className="choice">
        <input type="checkbox" name="revoke_tokens" />
        <span>
          End my personal tokens, too
          <span className="hint">
            If somebody else knew your password. Programs that use them have to log in again.
          </span>
        </span>
      </label>
    </FieldsForm>
  );
}

function Changed({ changed }: { readonly changed: ChangePasswordResponseJson }) {
  const { endedSessions = 0, endedTokens = 0, keptTokens = [], keptTokenCount = 0 } = changed;
  const more = keptTokenCount - keptTokens.length;
  return (
    <>
      <Notice kind="success">
        Your password is changed. Other sessions that ended: {endedSessions}.
        {endedTokens > 0 && ` Personal tokens that ended: ${endedTokens}.`}
      </Notice>
      {keptTokens.length > 0 && (
        <>
          <h3>Personal tokens that stay valid</h3>
          <ul>
            {keptTokens.map(({ tokenId, name, organization }) => (
              <li key={tokenId}>
                <bdi>{name}</bdi> ({organization})
              </li>
            ))}
            {more > 0 && <li>and {more} more</li>}
          </ul>
        </>
      )}
    </>
  );
}
