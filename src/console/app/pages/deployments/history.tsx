/** What was changed of a deployment lately, and by whom, from the audit log. For admins. */
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { DeploymentJson } from "../../../../../gen/tessera/v1/deployment_pb.js";
import type { AuditEventJson } from "../../../../../gen/tessera/v1/organization_pb.js";
import { historyOf } from "../../api/audit.ts";
import { useOrganization } from "../../api/session.ts";
import { Time } from "../../ui/time.tsx";
import { changesOf } from "./setting-changes.ts";

/** Changes that are shown; the audit log has all. */
const MAX_SHOWN_CHANGES = 8;

export function History({ deployment }: { readonly deployment: DeploymentJson }) {
  const organization = useOrganization();
  const { name = "", version = 0 } = deployment;
  const { data: events = [] } = useQuery({
    ...historyOf(organization, name, version),
    placeholderData: keepPreviousData,
  });
  return (
    <section aria-labelledby="history" className="card">
      <header className="section-header">
        <h2 id="history">History</h2>
        <Link to="/o/$organization/audit" params={{ organization }} search={{ subject: name }}>
          View all
        </Link>
      </header>
      <ol className="history">
        {events.slice(0, MAX_SHOWN_CHANGES).map((event, index) => (
          <Change key={event.eventId} event={event} before={events.slice(index + 1)} />
        ))}
      </ol>
    </section>
  );
}

interface ChangeProps {
  readonly event: AuditEventJson;
  /** The events before it, newest first. */
  readonly before: readonly AuditEventJson[];
}

function Change({ event, before }: ChangeProps) {
  return (
    <li>
      <p>
        {changesOf(event, before).map(({ what, was, is }) => (
          <span key={what} className="history-change">
            {what}
            {is !== undefined && (
              <>
                {" "}
                {was !== undefined && (
                  <>
                    <del>{was}</del> <span aria-hidden="true">→</span>{" "}
                  </>
                )}
                <ins>{is}</ins>
              </>
            )}
          </span>
        ))}
      </p>
      <p className="secondary">
        {event.time !== undefined && <Time at={event.time} />} by <bdi>{event.actor}</bdi>
      </p>
    </li>
  );
}
