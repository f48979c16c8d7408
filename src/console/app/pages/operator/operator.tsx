/** The platform as its operators see it: nodes, organizations and the database. */
import { useSuspenseInfiniteQuery, useSuspenseQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { OperatedOrganizationJson } from "../../../../../gen/tessera/v1/operator_pb.js";
import { allOrganizations, platform } from "../../api/operator.ts";
import { useOrganization, usePerson } from "../../api/session.ts";
import { Button } from "../../ui/button.tsx";
import { Command } from "../../ui/command.tsx";
import { DataTable } from "../../ui/data-table.tsx";
import { Empty } from "../../ui/empty.tsx";
import { Facts } from "../../ui/facts.tsx";
import { Page } from "../../ui/page.tsx";
import { bytes } from "../../ui/quantity.ts";
import { Time } from "../../ui/time.tsx";

export function Operator() {
  const { isOperator } = usePerson();
  const organization = useOrganization();
  return (
    <Page title="Platform" description="Who is on it, and its database.">
      {isOperator ? (
        <>
          <p className="secondary">
            Its nodes are among the{" "}
            <Link to="/o/$organization/machines" params={{ organization }}>
              machines
            </Link>
            .
          </p>
          <Organizations />
          <Database />
        </>
      ) : (
        <OperatorsOnly />
      )}
    </Page>
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
          { name: "Members", cell: ({ members = 0 }) => members },
          { name: "Deployments", cell: ({ deployments = 0 }) => deployments },
          { name: "Monitoring tokens", cell: (one) => <Monitoring one={one} /> },
          { name: "Links of invitations", cell: (one) => allowed(one.invitationLinksEnabled) },
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
      {allowed(monitoringEnabled)}
      {askedAt !== undefined && (
        <span className="secondary">
          Asked for by <bdi>{monitoringAskedBy}</bdi> <Time at={askedAt} />
        </span>
      )}
    </>
  );
}

const allowed = (is: boolean | undefined): string => (is ? "allowed" : "not allowed");

function Database() {
  const { version = "", database = {} } = useSuspenseQuery(platform).data;
  return (
    <section aria-labelledby="database">
      <h2 id="database">Database</h2>
      <Facts
        entries={{
          Program: `${database.kind} ${database.version}`,
          Size: bytes(Number(database.sizeBytes ?? 0)),
          Schema: `version ${database.schemaVersion}`,
          "Tessera here": version,
        }}
      />
    </section>
  );
}
