/** The audit log: who did what, from where. */
import { useSuspenseInfiniteQuery } from "@tanstack/react-query";
import { getRouteApi, useNavigate } from "@tanstack/react-router";
import { Fragment } from "react";
import type { AuditEventJson } from "../../../../../gen/tessera/v1/organization_pb.js";
import { type AuditSearch, auditOf, readAuditSearch } from "../../api/audit.ts";
import { csvOf } from "../../api/audit-csv.ts";
import { useOrganization, usePerson } from "../../api/session.ts";
import { AdminsOnly } from "../../ui/admins-only.tsx";
import { Button } from "../../ui/button.tsx";
import { DataTable } from "../../ui/data-table.tsx";
import { Empty } from "../../ui/empty.tsx";
import { Page } from "../../ui/page.tsx";
import { save } from "../../ui/save.ts";
import { SearchField } from "../../ui/search-field.tsx";
import { Time } from "../../ui/time.tsx";

const route = getRouteApi("/signed-in/o/$organization/audit");

export function Audit() {
  const search: AuditSearch = route.useSearch();
  const { isAdmin } = usePerson();
  return (
    <Page title="Audit log" description="What people and tokens did here, newest first.">
      {isAdmin ? (
        <>
          <AuditFilter search={search} />
          <Events search={search} />
        </>
      ) : (
        <AdminsOnly />
      )}
    </Page>
  );
}

function AuditFilter({ search }: { readonly search: AuditSearch }) {
  const navigate = useNavigate();
  const change = (changed: AuditSearch) =>
    void navigate({ to: ".", search: readAuditSearch({ ...search, ...changed }), replace: true });
  return (
    <section className="filters" aria-label="Filter">
      <SearchField
        label="What, such as token"
        value={search.action}
        maxLength={63}
        onChange={(action) => change({ action: action.trim().toLowerCase() })}
      />
      <SearchField
        label="Subject"
        value={search.subject}
        onChange={(subject) => change({ subject })}
      />
      <SearchField label="By" value={search.actor} onChange={(actor) => change({ actor })} />
    </section>
  );
}

function Events({ search }: { readonly search: AuditSearch }) {
  const organization = useOrganization();
  const list = useSuspenseInfiniteQuery(auditOf(organization, search));
  const events = list.data.pages.flatMap((page) => page.auditEvents ?? []);
  if (events.length === 0 && !list.hasNextPage) {
    return (
      <Empty inPage title="No event is like this">
        <p>Choose something else above.</p>
      </Empty>
    );
  }
  return (
    <>
      <DataTable
        label="Events"
        items={events}
        keyOf={({ eventId = "" }) => eventId}
        columns={[
          { name: "What", cell: ({ action }) => <code>{action}</code> },
          { name: "Subject", cell: (event) => <Subject event={event} /> },
          { name: "By", cell: ({ actor }) => actor },
          { name: "From", cell: ({ address }) => address },
          { name: "When", cell: ({ time }) => time !== undefined && <Time at={time} /> },
        ]}
      />
      <div className="result-line">
        {list.hasNextPage && (
          <Button isBusy={list.isFetchingNextPage} onClick={() => void list.fetchNextPage()}>
            Show more
          </Button>
        )}
        <Button
          kind="quiet"
          onClick={() => save(csvOf(events), `${organization}-audit.csv`, "text/csv")}
        >
          Save as CSV
        </Button>
      </div>
    </>
  );
}

function Subject({ event: { subject, details = {} } }: { readonly event: AuditEventJson }) {
  const shown = Object.entries(details);
  return (
    <>
      {subject}
      {shown.length > 0 && (
        <span className="secondary">
          {shown.map(([name, value], index) => (
            <Fragment key={name}>
              {index > 0 && ", "}
              {name}: <bdi>{value}</bdi>
            </Fragment>
          ))}
        </span>
      )}
    </>
  );
}
