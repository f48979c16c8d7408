/** The audit log: who did what, from where. */
import { useSuspenseInfiniteQuery } from "@tanstack/react-query";
import type { AuditEventJson } from "../../../../../gen/tessera/v1/organization_pb.js";
import { auditOf } from "../../api/members.ts";
import { useOrganization } from "../../api/session.ts";
import { Button } from "../../ui/button.tsx";
import { Page } from "../../ui/page.tsx";
import { Time } from "../../ui/time.tsx";

export function Audit() {
  const list = useSuspenseInfiniteQuery(auditOf(useOrganization()));
  const events = list.data.pages.flatMap((page) => page.auditEvents ?? []);
  return (
    <Page title="Audit log" description="What people and tokens did here, newest first.">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard */}
      <section className="table-box" aria-label="Events" tabIndex={0}>
        <table>
          <thead>
            <tr>
              <th scope="col">What</th>
              <th scope="col">Subject</th>
              <th scope="col">By</th>
              <th scope="col">From</th>
              <th scope="col">When</th>
            </tr>
          </thead>
          <tbody>
            {events.map((event) => (
              <EventRow key={event.eventId} event={event} />
            ))}
          </tbody>
        </table>
      </section>
      {list.hasNextPage && (
        <Button isBusy={list.isFetchingNextPage} onClick={() => void list.fetchNextPage()}>
          Show more
        </Button>
      )}
    </Page>
  );
}

function EventRow({ event }: { readonly event: AuditEventJson }) {
  const { action, actor, address, subject, time, details = {} } = event;
  const shown = Object.entries(details).map(([name, value]) => `${name}: ${value}`);
  return (
    <tr>
      <th scope="row">
        <code>{action}</code>
      </th>
      <td>
        {subject}
        {shown.length > 0 && <span className="secondary">{shown.join(", ")}</span>}
      </td>
      <td>{actor}</td>
      <td>{address}</td>
      <td>{time !== undefined && <Time at={time} />}</td>
    </tr>
  );
}
