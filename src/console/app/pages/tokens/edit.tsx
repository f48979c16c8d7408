/** Changes a token's name, description, access and deployments. */
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { tokens } from "../../api/clients.ts";
import { useOrganization } from "../../api/session.ts";
import { type Access, deedsOf } from "../../api/token-access.ts";
import { isOrganizations } from "../../api/tokens.ts";
import { Dialog } from "../../ui/dialog.tsx";
import { formMessage } from "../../ui/form.ts";
import { FormActions } from "../../ui/form-actions.tsx";
import { Notice } from "../../ui/notice.tsx";
import { useToast } from "../../ui/toasts.tsx";
import { useSeenVersion } from "../../ui/use-seen-version.ts";
import { FIELDS, Fields, type TokenDialogProps, type TokenForm } from "./fields.tsx";

export default function EditToken({ token, onClose }: TokenDialogProps) {
  const organization = useOrganization();
  const queryClient = useQueryClient();
  const toast = useToast();
  const [fields, setFields] = useState<TokenForm>({
    name: token.name ?? "",
    description: token.description ?? "",
    access: (token.access ?? []) as readonly Access[],
    allDeployments: token.allDeployments ?? false,
    deployments: token.deployments ?? [],
  });
  const { tokenId = "" } = token;
  const sendSeen = useSeenVersion({
    thing: token,
    read: () => tokens.getToken({ organization, tokenId }),
    wordsOf: (now) => `${now.name}, ${deedsOf(now.access)}`,
  });
  const saving = useMutation({
    mutationFn: () =>
      sendSeen((version) =>
        tokens.updateToken({
          organization,
          token: {
            ...{ tokenId, version, ...fields },
            access: [...fields.access],
            deployments: [...fields.deployments],
          },
          updateMask: "name,description,access,allDeployments,deployments",
        }),
      ),
    onSuccess: async () => {
      await queryClient.invalidateQueries({ queryKey: ["tokens", organization] });
      toast(`Saved ${fields.name}`);
      onClose();
    },
  });
  const message = formMessage(saving.error, ...FIELDS, ...FIELDS.map((field) => `token.${field}`));
  return (
    <Dialog title={`Edit ${token.name}`} onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          saving.mutate();
        }}
      >
        <Fields
          value={fields}
          isOrganizations={isOrganizations(token)}
          error={saving.error}
          onChange={(changed) => {
            // What was wrong was so of the form as it was sent.
            saving.reset();
            setFields(changed);
          }}
        />
        {message && <Notice kind="error">{message}</Notice>}
        <FormActions action="Save" isBusy={saving.isPending} onClose={onClose} />
      </form>
    </Dialog>
  );
}
