/** What the menu of something that a deployment has does to it. */
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { messageOf } from "../../api/errors.ts";
import { useOrganization } from "../../api/session.ts";
import { useToast } from "../../ui/toasts.tsx";
import { useDeploymentName } from "./frame.tsx";

/**
 * Acts on something of the deployment, says so, and has the page read again. `kinds` are the first
 * words of the keys of what is read again, such as `webhooks`.
 */
export function useAct(...kinds: readonly string[]) {
  const organization = useOrganization();
  const deployment = useDeploymentName();
  const queryClient = useQueryClient();
  const toast = useToast();
  const readAgain = () =>
    Promise.all(
      kinds.map((kind) =>
        queryClient.invalidateQueries({ queryKey: [kind, organization, deployment] }),
      ),
    );
  const { mutate: act } = useMutation({
    mutationFn: async ({ run }: { run(): Promise<unknown>; readonly said: string }) => run(),
    onSuccess: (_answer, { said }) => {
      toast(said);
      void readAgain();
    },
    onError: (err) => toast(messageOf(err)),
  });
  return { organization, deployment, readAgain, act };
}
