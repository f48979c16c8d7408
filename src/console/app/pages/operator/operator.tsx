/** The platform as its operators see it: how it is, its organizations and its database. */
import { useSuspenseInfiniteQuery, useSuspenseQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { OperatedOrganizationJson } from "../../../../../gen/tessera/v1/operator_pb.js";
import { allOrganizations, nodes, platform } from "../../api/operator.ts";
import { useOrganization, usePerson } from "../../api/session.ts";
import { Button } from "../../ui/button.tsx";
import { Command } from "../../ui/command.tsx";
import { DataTable } from "../../ui/data-table.tsx";
import { between } from "../../ui/duration.ts";
import { Empty } from "../../ui/empty.tsx";
import { Numbers } from "../../ui/numbers.tsx";
import { Page } from "../../ui/page.tsx";
import { bytes } from "../../ui/quantity.ts";
import { Time } from "../../ui/time.tsx";
import { momentText } from "../../ui/time-range.ts";
import { useNow } from "../../ui/use-now.ts";

/** How often the uptime is told anew. */
const UPTIME_REFRESH_MS = 10_000;

export function Operator() {
  const { isOperator } = usePerson();
  const organization = useOrganization();
  return (
    <Page
      title="Platform"
      description="Organizations, version and database of this installation."
      actions={
        isOperator && (
          <Link className="button" to="/o/$organization/machines" params={{ organization }}>
            Machines
          </Link>
        )
      }
    >
      {isOperator ? (
        <>
          <State />
          <Organizations />
        </>
      ) : (
        <OperatorsOnly />
      )}
    </Page>
  );
}

function State() {
  const { version = "", database = {} } = useSuspenseQuery(platform).data;
  const { nodes: listed = [] } = useSuspenseQuery(nodes).data;
  const nowMs = useNow(UPTIME_REFRESH_MS);
  const draining = listed.filter(
    ({ facts, drain }) => facts?.draining === true || drain !== undefined,
  ).length;
  const [oldest] = listed.flatMap(({ startedAt }) => startedAt ?? []).sort();
  return (
    <Numbers
      label="State of the platform"
      numbers={[
        { name: "Version", value: version },
        {
          name: "Nodes ready",
          value: `${listed.length - draining} of ${listed.length}`,
          isBad: draining > 0,
          ...(draining > 0 && { note: `${draining} draining` }),
        },
        {
          name: "Database",
          value: bytes(Number(database.sizeBytes ?? 0)),
          note: `${database.kind} ${database.version}, schema ${database.schemaVersion}`,
        },
        {
          name: "Uptime",
          value: oldest === undefined ? "unknown" : between(oldest, undefined, nowMs),
          ...(oldest !== undefined && { note: `since ${momentText(oldest)}` }),
        },
      ]}
    />
  );
}

function OperatorsOnly() {
  const { person } = usePerson();
  return (
    <Empty inPage title="This is for operators">
      <p>A person is made an operator on the machine of the platform:</p>
      <Command text={`npx tessera-platform admin operators add ${person.email}`} />
    </Empty>
  );
}

function Organizations() {
  const list = useSuspenseInfiniteQuery(allOrganizations);
  const organizations = list.data.pages.flatMap((page) => page.organizations ?? []);
  return (
    <section aria-labelledby="organizations">
      <h2 id="organizations">Organizations</h2>
      <DataTable
        label="All organizations"
        items={organizations}
        keyOf={({ name = "" }) => name}
        columns={[
          {
            name: "Name",
            cell: ({ name, displayName }) => (
              <>
                {name}
                {displayName && <span className="secondary">{displayName}</span>}
              </>
            ),
          },
          { name: "Members", isNumber: true, cell: ({ members = 0 }) => members },
          { name: "Deployments", isNumber: true, cell: ({ deployments = 0 }) => deployments },
          { name: "Monitoring tokens", cell: (one) => <Monitoring one={one} /> },
          { name: "Invite links", cell: (one) => onOff(one.invitationLinksEnabled) },
          {
            name: "Created",
            cell: ({ createdAt }) => createdAt !== undefined && <Time at={createdAt} />,
          },
        ]}
      />
      {list.hasNextPage && (
        <Button isBusy={list.isFetchingNextPage} onClick={() => void list.fetchNextPage()}>
          Show more
        </Button>
      )}
    </section>
  );
}

function Monitoring({ one }: { readonly one: OperatedOrganizationJson }) {
  const { monitoringEnabled, monitoringAskedAt: askedAt, monitoringAskedBy } = one;
  return (
    <>
      {onOff(monitoringEnabled)}
      {askedAt !== undefined && (
        <span className="secondary">
          Asked for by <bdi>{monitoringAskedBy}</bdi> <Time at={askedAt} />
        </span>
      )}
    </>
  );
}

const onOff = (is: boolean | undefined): string => (is ? "on" : "off");
