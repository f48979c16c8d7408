/** The frame of a deployment's pages: its name, its state and the way between them. */
import { useMutation, usePrefetchQuery, useQuery, useQueryClient } from "@tanstack/react-query";
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import { type ReactNode, useState } from "react";
import type { DeploymentJson } from "../../../../../gen/tessera/v1/deployment_pb.js";
import { deployments } from "../../api/clients.ts";
import { messageOf } from "../../api/errors.ts";
import { useOrganization } from "../../api/session.ts";
import { statsOf, taskStatsOf } from "../../api/task-stats.ts";
import { useDeployment } from "../../api/use-deployments.ts";
import { Button } from "../../ui/button.tsx";
import { Confirm } from "../../ui/confirm.tsx";
import { Empty } from "../../ui/empty.tsx";
import { Menu } from "../../ui/menu.tsx";
import { Page } from "../../ui/page.tsx";
import { StreamStatus } from "../../ui/stream-status.tsx";
import { Strip } from "../../ui/strip.tsx";
import { useToast } from "../../ui/toasts.tsx";
import { DeploymentState } from "./state.tsx";
import { failingIn, hourText } from "./state-words.ts";
import "./deployment.css";

const route = getRouteApi("/signed-in/o/$organization/deployments/$deployment");

const TABS = [
  ["Overview", "/o/$organization/deployments/$deployment"],
  ["Tasks", "/o/$organization/deployments/$deployment/tasks"],
  ["Playground", "/o/$organization/deployments/$deployment/playground"],
  ["Revisions", "/o/$organization/deployments/$deployment/revisions"],
  ["Metrics", "/o/$organization/deployments/$deployment/metrics"],
  ["Log", "/o/$organization/deployments/$deployment/log"],
  ["Schedules", "/o/$organization/deployments/$deployment/schedules"],
  ["Webhooks", "/o/$organization/deployments/$deployment/webhooks"],
  ["Settings", "/o/$organization/deployments/$deployment/settings"],
] as const;

/** How often the page asks which deployments fail, where it shows nothing else of the last hour. */
const REFRESH_MS = 10_000;

/** The name of the deployment in the path. */
export const useDeploymentName = (): string => route.useParams().deployment;

export function DeploymentFrame({
  title,
  hasStream = false,
  children,
}: {
  readonly title: string;
  /** The page follows a stream of its own. */
  readonly hasStream?: boolean;
  readonly children: (deployment: DeploymentJson) => ReactNode;
}) {
  const organization = useOrganization();
  const name = useDeploymentName();
  const failing = useFailing(organization);
  const { deployment, isDeleted, stream } = useDeployment(organization, name, { hasStream });
  if (isDeleted) {
    return <Deleted name={name} />;
  }
  return (
    <Page
      title={name}
      crumbs={
        <Link to="/o/$organization/deployments" params={{ organization }}>
          Deployments
        </Link>
      }
      part={title === "Overview" ? undefined : title.toLowerCase()}
      description={
        <>
          <DeploymentState deployment={deployment} failing={failing} />
          {title === "Overview" && !deployment.statusReason && <Hour of={name} />}
        </>
      }
      actions={
        <>
          {!hasStream && <StreamStatus state={stream} />}
          <Actions deployment={deployment} />
        </>
      }
    >
      <Strip className="tabs" label={`Pages of ${name}`} current={title}>
        {TABS.map(([label, to]) => (
          <Link
            key={to}
            to={to}
            params={{ organization, deployment: name }}
            activeOptions={{ exact: label === "Overview", includeSearch: false }}
          >
            {label}
          </Link>
        ))}
      </Strip>
      {children(deployment)}
    </Page>
  );
}

/** The names of the failing deployments, for a page that shows no other numbers of tasks. */
function useFailing(organization: string): readonly string[] {
  const query = taskStatsOf(organization);
  // It is read together with the deployment, so that the state does not change right after it is shown.
  usePrefetchQuery(query);
  const { data = [] } = useQuery({ ...query, select: failingIn, refetchInterval: REFRESH_MS });
  return data;
}

/** What became of its calls and tasks, behind a state that has no reason. */
function Hour({ of: name }: { readonly of: string }) {
  const { data } = useQuery(taskStatsOf(useOrganization()));
  return data !== undefined && <span>{hourText(statsOf(data, name))}</span>;
}

/** In the place of a page whose deployment goes while somebody looks. */
function Deleted({ name }: { readonly name: string }) {
  const organization = useOrganization();
  return (
    <Empty title={`${name} was deleted`}>
      <p>Its revisions, its log and the results of its tasks went with it.</p>
      <Link to="/o/$organization/deployments" params={{ organization }} className="button">
        See the deployments that are left
      </Link>
    </Empty>
  );
}

/** What can be done with a deployment: stop, start, delete. */
function Actions({ deployment }: { readonly deployment: DeploymentJson }) {
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
      {isStopped && (
        <Button isBusy={starting.isPending} onClick={() => starting.mutate()}>
          Start
        </Button>
      )}
      <Menu
        id="deployment-actions"
        label={`More actions for ${name}`}
        items={[
          ...(isStopped ? [] : [{ label: "Stop", run: () => setAsked("stop") }]),
          { label: "Delete", isDangerous: true, run: () => setAsked("delete") },
        ]}
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
