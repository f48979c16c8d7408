/** What can be done with a deployment: stop, start, delete. */
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import type { DeploymentJson } from "../../../../../gen/tessera/v1/deployment_pb.js";
import { deployments } from "../../api/clients.ts";
import { messageOf } from "../../api/errors.ts";
import { useOrganization } from "../../api/session.ts";
import { Button } from "../../ui/button.tsx";
import { Confirm } from "../../ui/confirm.tsx";
import { Menu } from "../../ui/menu.tsx";
import { useToast } from "../../ui/toasts.tsx";

export function Actions({ deployment }: { readonly deployment: DeploymentJson }) {
  const organization = useOrganization();
  const queryClient = useQueryClient();
  const navigate = useNavigate();
  const toast = useToast();
  const [asked, setAsked] = useState<"stop" | "delete">();
  const { name = "", url, status } = deployment;
  const isStopped = status === "DEPLOYMENT_STATUS_STOPPED";
  const changed = (text: string): void => {
    void queryClient.invalidateQueries({ queryKey: ["deployment", organization, name] });
    void queryClient.invalidateQueries({ queryKey: ["deployments", organization] });
    toast(text);
    setAsked(undefined);
  };
  const starting = useMutation({
    mutationFn: () => deployments.startDeployment({ organization, deployment: name }),
    onSuccess: () => changed(`${name} starts`),
    onError: (err) => toast(messageOf(err)),
  });
  return (
    <>
      <a className="button" href={url}>
        Open
      </a>
      {isStopped ? (
        <Button isBusy={starting.isPending} onClick={() => starting.mutate()}>
          Start
        </Button>
      ) : (
        <Button onClick={() => setAsked("stop")}>Stop</Button>
      )}
      <Menu
        id="deployment-actions"
        label={`More actions for ${name}`}
        items={[{ label: "Delete", isDangerous: true, run: () => setAsked("delete") }]}
      />
      {asked === "stop" && (
        <Confirm
          title={`Stop ${name}?`}
          action="Stop"
          run={() => deployments.stopDeployment({ organization, deployment: name })}
          onDone={() => changed(`${name} is stopped`)}
          onClose={() => setAsked(undefined)}
        >
          <p>Calls are answered 503 until it is started again. Its tasks wait.</p>
        </Confirm>
      )}
      {asked === "delete" && (
        <Confirm
          title={`Delete ${name}?`}
          action="Delete"
          run={() => deployments.deleteDeployment({ organization, deployment: name })}
          onDone={() => {
            // The list alone is read again: of the deployment there is nothing to read.
            void queryClient.invalidateQueries({ queryKey: ["deployments", organization] });
            toast(`${name} is deleted`);
            void navigate({ to: "/o/$organization/deployments", params: { organization } });
          }}
          onClose={() => setAsked(undefined)}
        >
          <p>Its revisions, its log and the results of its tasks go with it.</p>
        </Confirm>
      )}
    </>
  );
}
