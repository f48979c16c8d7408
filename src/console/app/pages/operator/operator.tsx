/** The platform as its operators see it: how it is, its organizations and its database. */
import { useSuspenseInfiniteQuery, useSuspenseQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { OperatedOrganizationJson } from "../../../../../gen/tessera/v1/operator_pb.js";
import { allOrganizations, nodes, platform } from "../../api/operator.ts";
import { useOrganization, usePerson } from "../../api/session.ts";
import { ShowMore } from "../../ui/button.tsx";
import { Command } from "../../ui/command.tsx";
import { counted } from "../../ui/counted.ts";
import { DataTable } from "../../ui/data-table.tsx";
import { Empty } from "../../ui/empty.tsx";
import { Numbers } from "../../ui/numbers.tsx";
import { Page } from "../../ui/page.tsx";
import { bytes } from "../../ui/quantity.ts";
import { Status } from "../../ui/status.tsx";
import { Time, Uptime } from "../../ui/time.tsx";

export function Operator() {
  const { isOperator } = usePerson();
  return (
    <Page
      title="Platform"
      description={
        isOperator ? <Version /> : "Organizations, version and database of this installation."
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

function Version() {
  const { version = "", database = {} } = useSuspenseQuery(platform).data;
  return `Tessera ${version}, ${database.kind} ${database.version}, schema ${database.schemaVersion}`;
}

function State() {
  const organization = useOrganization();
  const { database = {} } = useSuspenseQuery(platform).data;
  const { nodes: listed = [] } = useSuspenseQuery(nodes).data;
  const draining = listed.filter(
    ({ facts, drain }) => facts?.draining === true || drain !== undefined,
  ).length;
  const [oldest] = listed.flatMap(({ startedAt }) => startedAt ?? []).sort();
  const ready = listed.length - draining;
  const isHealthy = draining === 0 && ready > 0;
  return (
    <>
      <p className="page-head">
        <Status tone={isHealthy ? "good" : ready > 0 ? "warning" : "bad"}>
          {isHealthy ? "Healthy" : ready > 0 ? "Degraded" : "No node is ready"}
        </Status>
        <Link to="/o/$organization/machines" params={{ organization }}>
          {ready} of {counted(listed.length, "node")} ready
        </Link>
        {draining > 0 && <span className="secondary">{draining} draining</span>}
      </p>
      <Numbers
        label="State of the platform"
        numbers={[
          { name: "Database", value: bytes(Number(database.sizeBytes ?? 0)) },
          {
            name: "Oldest node",
            value: oldest === undefined ? "unknown" : <Uptime since={oldest} />,
          },
        ]}
      />
    </>
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
                <OrganizationName name={name} />
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
      <ShowMore of={list} />
    </section>
  );
}

/** The way to an organization that the operator is in; of the others, the name. */
function OrganizationName({ name = "" }: { readonly name: string | undefined }) {
  const { person } = usePerson();
  return person.organizations?.some((own) => own.name === name) ? (
    <Link to="/o/$organization" params={{ organization: name }}>
      {name}
    </Link>
  ) : (
    name
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
