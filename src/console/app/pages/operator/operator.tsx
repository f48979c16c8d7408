/** The platform as its operators see it: how it is, its organizations, and what is set. */
import { useQueryClient, useSuspenseInfiniteQuery, useSuspenseQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import type {
  NodeFactsJson,
  OperatedOrganizationJson,
  PlatformSettingJson,
} from "../../../../../gen/tessera/v1/operator_pb.js";
import { organizations } from "../../api/clients.ts";
import { allOrganizations, nodes, platform } from "../../api/operator.ts";
import { me, useOrganization, usePerson } from "../../api/session.ts";
import { Button, ShowMore } from "../../ui/button.tsx";
import { Command } from "../../ui/command.tsx";
import { counted } from "../../ui/counted.ts";
import { DataTable } from "../../ui/data-table.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { Empty } from "../../ui/empty.tsx";
import { FieldsForm, textOf } from "../../ui/fields-form.tsx";
import { Numbers, type PageNumber } from "../../ui/numbers.tsx";
import { Page } from "../../ui/page.tsx";
import { bytes, count, type Format } from "../../ui/quantity.ts";
import { isNearlyAll, partOf, ShareBar, type Used } from "../../ui/share.tsx";
import { Status } from "../../ui/status.tsx";
import { Time } from "../../ui/time.tsx";
import { useToast } from "../../ui/toasts.tsx";
import "./operator.css";

export function Operator() {
  const { isOperator } = usePerson();
  const organization = useOrganization();
  const [isCreating, setCreating] = useState(false);
  return (
    <Page
      title="Platform"
      description={
        isOperator ? <Version /> : "Organizations, version and database of this installation."
      }
      actions={
        isOperator && (
          <>
            <Link to="/o/$organization/machines" params={{ organization }} className="button">
              Manage nodes
            </Link>
            <Button kind="primary" onClick={() => setCreating(true)}>
              Create organization
            </Button>
          </>
        )
      }
    >
      {isOperator ? (
        <>
          <State />
          <Organizations />
          <Settings />
        </>
      ) : (
        <OperatorsOnly />
      )}
      {isCreating && <CreateOrganization onClose={() => setCreating(false)} />}
    </Page>
  );
}

function Version() {
  const { version = "", database = {} } = useSuspenseQuery(platform).data;
  const size = bytes(Number(database.sizeBytes ?? 0));
  return `Tessera ${version}, ${database.kind} ${database.version} with ${size}, schema ${database.schemaVersion}`;
}

/** The numbers of the platform, under what is wrong with it. */
function State() {
  const organization = useOrganization();
  const { database = {} } = useSuspenseQuery(platform).data;
  const { nodes: listed = [] } = useSuspenseQuery(nodes).data;
  const list = useSuspenseInfiniteQuery(allOrganizations);
  const known = list.data.pages.flatMap((page) => page.organizations ?? []);
  /** An amount in the organizations that are read so far, with `+` if there are more of them. */
  const atLeast = (amount: number): string => `${amount}${list.hasNextPage ? "+" : ""}`;
  const facts = listed.flatMap((node) => node.facts ?? []);
  const sum = (of: Summed): number => facts.reduce((all, one) => all + Number(one[of] ?? 0), 0);
  const draining = listed.filter(
    (node) => node.facts?.draining === true || node.drain !== undefined,
  ).length;
  const ready = listed.length - draining;
  const waiting = sum("waiting");
  const { cells = [] } = database;
  const away = cells.filter(({ up }) => !up).map(({ name }) => name);
  const isHealthy = draining === 0 && ready > 0 && away.length === 0;
  const [disk = NO_DISK] = facts.map(diskOf).toSorted((one, other) => partOf(other) - partOf(one));
  return (
    <>
      <p className="page-head">
        <Status tone={isHealthy ? "good" : ready > 0 ? "warning" : "bad"}>
          {isHealthy ? "Healthy" : ready > 0 ? "Degraded" : "No node is ready"}
        </Status>
        {draining > 0 && <span className="secondary">{counted(draining, "node")} draining</span>}
        {cells.length > 0 && (
          <span className="secondary">
            {cells.length - away.length} of {counted(cells.length, "cell")} up
            {away.length > 0 && `; away: ${away.join(", ")}`}
          </span>
        )}
        {waiting > 0 && (
          <span className="secondary">
            {counted(waiting, "worker")} {waiting === 1 ? "waits" : "wait"} for room
          </span>
        )}
      </p>
      <div className="platform-numbers">
        <Numbers
          label="State of the platform"
          numbers={[
            { name: "Organizations", value: atLeast(known.length) },
            {
              name: "Deployments",
              value: atLeast(known.reduce((all, one) => all + (one.deployments ?? 0), 0)),
            },
            { name: "Tasks running", value: count(Number(database.runningTasks ?? 0)) },
            { name: "Tasks queued", value: count(Number(database.queuedTasks ?? 0)) },
            {
              name: "Nodes ready",
              value: (
                <Link to="/o/$organization/machines" params={{ organization }}>
                  {ready} of {listed.length}
                </Link>
              ),
              tone: draining > 0 ? "warning" : undefined,
            },
            shareOf({
              ...{ name: "Workers", format: String },
              ...{ used: sum("workers"), limit: sum("maxWorkers") },
            }),
            shareOf({
              ...{ name: "Memory of workers", format: bytes },
              ...{ used: sum("memoryBytes"), limit: sum("maxMemoryBytes") },
            }),
            shareOf({
              ...{ name: listed.length > 1 ? "Fullest disk" : "Disk", format: bytes, ...disk },
              isMuch: isNearlyAll(disk),
            }),
          ]}
        />
      </div>
    </>
  );
}

type Summed = "workers" | "maxWorkers" | "waiting" | "memoryBytes" | "maxMemoryBytes";

const NO_DISK: Used = { used: 0, limit: 0 };

/** The disk of a node. */
function diskOf({ diskBytes, freeDiskBytes }: NodeFactsJson): Used {
  const limit = Number(diskBytes ?? 0);
  return { used: limit - Number(freeDiskBytes ?? 0), limit };
}

interface ShareOfProps extends Used {
  readonly name: string;
  readonly format: Format;
  /** So much that it is to be watched. */
  readonly isMuch?: boolean;
}

/** What is used of something, such as `181 of 252 GiB`, with a bar where both are known. */
function shareOf({ name, format, isMuch = false, ...one }: ShareOfProps): PageNumber {
  const [used, limit] = [format(one.used), format(one.limit)];
  if (one.limit === 0) {
    return { name, value: used };
  }
  const [amount, unit] = used.split(" ");
  return {
    name,
    tone: isMuch ? "warning" : undefined,
    value: (
      <>
        {limit.split(" ")[1] === unit ? amount : used}{" "}
        <span className="number-unit">of {limit}</span>
        <ShareBar {...one} isMuch={isMuch} />
      </>
    ),
  };
}

/** The server checks who may create one, because a setting of the platform decides it. */
function CreateOrganization({ onClose }: { onClose(): void }) {
  const queryClient = useQueryClient();
  const toast = useToast();
  return (
    <Dialog title="Create organization" onClose={onClose}>
      <FieldsForm
        fields={[
          {
            name: "name",
            label: "Name",
            hint: "Lower case letters, digits and hyphens: it is in the addresses of its deployments, and never changes.",
            autoComplete: "off",
            maxLength: 63,
          },
          {
            name: "display_name",
            label: "Display name",
            autoComplete: "off",
            optional: true,
            maxLength: 100,
          },
        ]}
        submit="Create"
        send={(values) =>
          organizations.createOrganization({
            name: textOf(values, "name"),
            displayName: textOf(values, "display_name"),
          })
        }
        onDone={({ name = "" }) => {
          void queryClient.invalidateQueries({ queryKey: me.queryKey });
          void queryClient.invalidateQueries({ queryKey: allOrganizations.queryKey });
          toast(`Created ${name}`);
          onClose();
        }}
        onClose={onClose}
      >
        <p className="secondary">You become its admin, and invite others.</p>
      </FieldsForm>
    </Dialog>
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
  const [asked, setAsked] = useState<Switched>();
  const listed = list.data.pages.flatMap((page) => page.organizations ?? []);
  return (
    <section aria-labelledby="organizations">
      <h2 id="organizations">Organizations</h2>
      <DataTable
        label="All organizations"
        items={listed}
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
          {
            name: "Monitoring tokens",
            cell: (one) => <Monitoring one={one} ask={setAsked} />,
          },
          {
            name: "Invite links",
            cell: ({ name = "", invitationLinksEnabled: isOn = false }) => (
              <Switch of={{ ...INVITE_LINKS, organization: name, isOn }} ask={setAsked} />
            ),
          },
          {
            name: "Created",
            cell: ({ createdAt }) => createdAt !== undefined && <Time at={createdAt} />,
          },
        ]}
      />
      <ShowMore of={list} />
      {asked && <HowToSwitch of={asked} onClose={() => setAsked(undefined)} />}
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

/** What an organization is let have, which is switched on the machine of the platform. */
interface Switched {
  readonly organization: string;
  readonly isOn: boolean;
  readonly title: string;
  /** What it lets the admins of the organization do. */
  readonly summary: string;
  /** The command of `tessera admin`. */
  readonly command: string;
}

const MONITORING = {
  title: "Monitoring tokens",
  summary: "make monitoring tokens, with which Prometheus reads its metrics.",
  command: "monitoring",
};
const INVITE_LINKS = {
  title: "Invite links",
  summary: "see the links of invitations, also for people without an account.",
  command: "invitation-links",
};

interface SwitchProps {
  readonly of: Switched;
  ask(of: Switched): void;
}

function Switch({ of, ask }: SwitchProps) {
  return (
    <Button
      kind="quiet"
      aria-label={`${of.title} of ${of.organization}: ${onOff(of.isOn)}`}
      aria-haspopup="dialog"
      onClick={() => ask(of)}
    >
      <Status tone={of.isOn ? "good" : "idle"}>{onOff(of.isOn)}</Status>
    </Button>
  );
}

interface HowToSwitchProps {
  readonly of: Switched;
  onClose(): void;
}

/** The command that switches it: by the API, operators change nothing but which nodes take work. */
function HowToSwitch({ of, onClose }: HowToSwitchProps) {
  const { organization, isOn, title, summary, command } = of;
  return (
    <Dialog title={`${title} of ${organization}`} onClose={onClose}>
      <p>
        {isOn ? "On" : "Off"}: its admins {isOn ? "can" : "cannot"} {summary}
      </p>
      <p>To turn it {onOff(!isOn)}, run on the machine of the platform:</p>
      <Command
        text={`npx tessera-platform admin ${command} ${isOn ? "disable" : "enable"} --organization ${organization}`}
      />
    </Dialog>
  );
}

interface MonitoringProps {
  readonly one: OperatedOrganizationJson;
  ask(of: Switched): void;
}

function Monitoring({ one, ask }: MonitoringProps) {
  const { name = "", monitoringEnabled: isOn = false } = one;
  const { monitoringAskedAt: askedAt, monitoringAskedBy } = one;
  return (
    <>
      <Switch of={{ ...MONITORING, organization: name, isOn }} ask={ask} />
      {askedAt !== undefined && (
        <span className="secondary">
          Asked for by <bdi>{monitoringAskedBy}</bdi> <Time at={askedAt} />
        </span>
      )}
    </>
  );
}

/** The settings that the answering node was started with; they can only be read here. */
function Settings() {
  const { settings = [] } = useSuspenseQuery(platform).data;
  const set = settings.filter((one) => one.set);
  const others = settings.filter((one) => !one.set);
  return (
    <section aria-labelledby="settings">
      <h2 id="settings">Settings</h2>
      <p className="secondary">
        As the node that answered was started. Change them there, and start it again.{" "}
        <a href="/docs/configuration.html">All settings</a>
      </p>
      {set.length > 0 && <SettingTable label="Settings that are set" settings={set} />}
      {others.length > 0 && (
        <details className="platform-defaults">
          <summary>{counted(others.length, "setting")} with defaults</summary>
          <SettingTable label="Settings with defaults" settings={others} />
        </details>
      )}
    </section>
  );
}

interface SettingTableProps {
  readonly label: string;
  readonly settings: readonly PlatformSettingJson[];
}

function SettingTable({ label, settings }: SettingTableProps) {
  return (
    <DataTable
      label={label}
      items={settings}
      keyOf={({ name = "" }) => name}
      columns={[
        {
          ...{ name: "Setting", grows: true },
          cell: ({ name, summary }) => (
            <>
              <code>{name}</code>
              <span className="secondary setting-summary">{summary}</span>
            </>
          ),
        },
        {
          name: "Value",
          cell: ({ value, set, secret }) =>
            secret ? (
              <span className="secondary">set, not shown</span>
            ) : set ? (
              <code>{value}</code>
            ) : (
              value
            ),
        },
      ]}
    />
  );
}

const onOff = (is: boolean): string => (is ? "on" : "off");
