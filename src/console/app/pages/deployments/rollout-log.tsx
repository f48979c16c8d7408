/** What the nodes and the workers of a revision wrote while it was rolled out. */
import { useQuery } from "@tanstack/react-query";
import type { RevisionJson } from "../../../../../gen/tessera/v1/deployment_pb.js";
import { rolloutLogOf } from "../../api/deployments.ts";
import { messageOf } from "../../api/errors.ts";
import { useOrganization } from "../../api/session.ts";
import { Loading } from "../../ui/loading.tsx";
import { Notice } from "../../ui/notice.tsx";
import { useDeploymentName } from "./frame.tsx";
import "../../ui/log.css";

export function RolloutLog({ of: revision }: { readonly of: RevisionJson }) {
  const organization = useOrganization();
  const name = useDeploymentName();
  const { data: lines, error } = useQuery(rolloutLogOf(organization, name, revision));
  if (error) {
    return <Notice kind="error">{messageOf(error)}</Notice>;
  }
  if (lines === undefined) {
    return <Loading />;
  }
  return lines.length === 0 ? (
    <p className="secondary">
      It wrote nothing, or its lines are gone: the newest 10,000 are kept.
    </p>
  ) : (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard
    <section className="log-lines rollout-log" aria-label="Log of its roll-out" tabIndex={0}>
      {lines.map(({ sequence, time = "", stream, level, text }) => (
        <div key={sequence} className={`log-line ${stream} ${level}`}>
          <time dateTime={time}>{time.slice(11, 19)}</time>
          <span>{text}</span>
        </div>
      ))}
    </section>
  );
}
