/** Deletes a token. */
import { useQueryClient } from "@tanstack/react-query";
import { tokens } from "../../api/clients.ts";
import { useOrganization } from "../../api/session.ts";
import { Confirm } from "../../ui/confirm.tsx";
import { Time } from "../../ui/time.tsx";
import { useToast } from "../../ui/toasts.tsx";
import type { TokenDialogProps } from "./fields.tsx";

export default function DeleteToken({ token, onClose }: TokenDialogProps) {
  const organization = useOrganization();
  const queryClient = useQueryClient();
  const toast = useToast();
  const { name = "", tokenId = "", lastUsedAt } = token;
  return (
    <Confirm
      title={`Delete ${name}?`}
      action="Delete"
      run={() => tokens.deleteToken({ organization, tokenId })}
      onDone={() => {
        void queryClient.invalidateQueries({ queryKey: ["tokens", organization] });
        toast(`Deleted ${name}`);
        onClose();
      }}
      onClose={onClose}
    >
      <p>
        Its value becomes invalid at once, for every program that uses it.{" "}
        {lastUsedAt === undefined ? (
          "It was never used."
        ) : (
          <>
            It was used last <Time at={lastUsedAt} />.
          </>
        )}
      </p>
    </Confirm>
  );
}
