/** The audit log: who did what, when, from where. */
import { infiniteQueryOptions, useQuery, useSuspenseInfiniteQuery } from "@tanstack/react-query";
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import { Fragment, Suspense } from "react";
import type { AuditEventJson } from "../../../../../gen/tessera/v1/organization_pb.js";
import { csvOf } from "../../api/audit-csv.ts";
import { organizations } from "../../api/clients.ts";
import { membersOf } from "../../api/members.ts";
import type { RunOf } from "../../api/runs.ts";
import { useOrganization, usePerson } from "../../api/session.ts";
import { Button, ShowMore } from "../../ui/button.tsx";
import { Empty } from "../../ui/empty.tsx";
import { Facts } from "../../ui/facts.tsx";
import { Field } from "../../ui/field.tsx";
import { chosenFilter, Filters } from "../../ui/filters.tsx";
import { DOWNLOAD, Icon } from "../../ui/icon.tsx";
import { Loading } from "../../ui/loading.tsx";
import { OpenableTable } from "../../ui/openable-table.tsx";
import { Page } from "../../ui/page.tsx";
import { RangePicker } from "../../ui/range-picker.tsx";
import { save } from "../../ui/save.ts";
import { SearchField } from "../../ui/search-field.tsx";
import { momentText, Time } from "../../ui/time.tsx";
import { boundsIn, RANGES, rangeWords } from "../../ui/time-range.ts";
import { type AuditSearch, readAuditSearch } from "./audit-search.ts";
import { ACTION_KINDS, foldedEvents, wordsOf } from "./audit-words.ts";
import "./audit.css";

const route = getRouteApi("/signed-in/o/$organization/audit");

export function Audit() {
  const search = readAuditSearch(route.useSearch());
  const { isAdmin } = usePerson();
  return (
    <Page title="Audit log" description="What people and tokens did here, newest first.">
      {isAdmin ? (
        <>
          <AuditFilter search={search} />
          <Suspense fallback={<Loading />}>
            <Events search={search} />
          </Suspense>
        </>
      ) : (
        <AdminsOnly />
      )}
    </Page>
  );
}

interface AuditProps {
  readonly search: AuditSearch;
}

/** Those that are shown, as a file for spreadsheets. */
function Export({ search }: AuditProps) {
  const organization = useOrganization();
  const { data } = useSuspenseInfiniteQuery(auditOf(organization, search));
  const events = data.pages.flatMap((page) => page.auditEvents ?? []);
  return (
    <Button
      kind="icon"
      className="worded"
      aria-label="Export CSV"
      title="Export CSV"
      disabled={events.length === 0}
      onClick={() => save(csvOf(events), `${organization}-audit.csv`, "text/csv")}
    >
      <Icon path={DOWNLOAD} />
      <span aria-hidden="true">Export CSV</span>
    </Button>
  );
}

function AuditFilter({ search }: AuditProps) {
  const navigate = useNavigate();
  const { data: members = [] } = useQuery(membersOf(useOrganization()));
  const change = (changed: AuditSearch) =>
    void navigate({ to: ".", search: readAuditSearch({ ...search, ...changed }), replace: true });
  const { action = "", actor } = search;
  const chosen: readonly (readonly [text: string | undefined, changed: AuditSearch])[] = [
    [ACTION_KINDS[action] ?? search.action, { action: undefined }],
    [actor, { actor: undefined }],
    [rangeWords(search, Date.now()), { range: undefined, from: undefined, to: undefined }],
  ];
  return (
    <Filters
      className="audit-filters"
      first={
        <SearchField
          label="Subject"
          placeholder="Subject"
          value={search.subject}
          onChange={(subject) => change({ subject })}
        />
      }
      chosen={chosen.flatMap(([text, changed]) => chosenFilter(text, () => change(changed)))}
      actions={
        <Suspense>
          <Export search={search} />
        </Suspense>
      }
    >
      <Field label="Action">
        {(control) => (
          <select
            {...control}
            value={action}
            onChange={({ target }) => change({ action: target.value })}
          >
            <option value="">All actions</option>
            {action !== "" && !Object.hasOwn(ACTION_KINDS, action) && (
              <option value={action}>{action}</option>
            )}
            {Object.entries(ACTION_KINDS).map(([kind, label]) => (
              <option key={kind} value={kind}>
                {label}
              </option>
            ))}
          </select>
        )}
      </Field>
      <SearchField
        label="Person or token"
        placeholder="Anyone"
        value={search.actor}
        suggestions={[...members.map(({ email = "" }) => email), "operator"]}
        onChange={(actor) => change({ actor })}
      />
      <RangePicker search={search} standard="all" />
    </Filters>
  );
}

function Events({ search }: AuditProps) {
  const organization = useOrganization();
  const list = useSuspenseInfiniteQuery(auditOf(organization, search));
  const events = list.data.pages.flatMap((page) => page.auditEvents ?? []);
  if (events.length === 0 && !list.hasNextPage) {
    return (
      <Empty inPage title="No events match">
        <p>Choose another subject, action, person or time range.</p>
      </Empty>
    );
  }
  return (
    <div className="audit">
      <OpenableTable
        label="Events"
        items={foldedEvents(events)}
        keyOf={([{ eventId = "" }]) => eventId}
        columns={[
          { name: "Event", grows: true, cell: (alike) => <What alike={alike} /> },
          { name: "By", narrow: "unnamed", cell: ([event]) => <By event={event} /> },
          {
            ...{ name: "From", narrow: "left-out" },
            cell: ([{ address }]) => address && <code>{address}</code>,
          },
          {
            ...{ name: "Time", narrow: "unnamed" },
            cell: ([{ time }]) => time !== undefined && <Time at={time} />,
          },
        ]}
        detailsOf={(alike) => <AsStored alike={alike} />}
      />
      <ShowMore of={list} />
    </div>
  );
}

interface AlikeProps {
  /** Equal events one after another, the newest first. */
  readonly alike: RunOf<AuditEventJson>;
}

/** An event as a sentence in one line, with how often it came, and what it leaves out. */
function What({ alike }: AlikeProps) {
  const { before, subject, after, more } = wordsOf(alike[0]);
  return (
    <>
      <bdi>
        {before}
        {subject !== "" && <bdi className="audit-subject">{subject}</bdi>}
        {after}
        {alike.length > 1 && `, ${alike.length} times`}
      </bdi>
      {more.length > 0 && (
        <span className="audit-more">
          {more.map((text, index) => (
            <Fragment key={text}>
              {index > 0 && ", "}
              <bdi>{text}</bdi>
            </Fragment>
          ))}
        </span>
      )}
    </>
  );
}

/** An event as the API has it. */
function AsStored({ alike }: AlikeProps) {
  const [{ action = "", subject = "", subjectId = "", eventId = "", details = {}, address = "" }] =
    alike;
  const times = alike.map(({ time = "" }) => momentText(Date.parse(time))).join("; ");
  const stored = {
    ...{ action, subject, "subject id": subjectId, ...details },
    ...{ from: address, "event id": eventId, [alike.length > 1 ? "times" : "time"]: times },
  };
  return (
    <Facts
      entries={Object.fromEntries(
        Object.entries(stored).map(([name, value]) => [
          name.replaceAll("_", " "),
          <bdi key={name}>{value || "none"}</bdi>,
        ]),
      )}
    />
  );
}

/** Who did it, and with which token. */
function By({ event: { actor, details = {} } }: { readonly event: AuditEventJson }) {
  const { by_token: token } = details;
  return (
    <>
      <bdi>{actor}</bdi>
      {token && (
        <span className="secondary">
          via token <bdi>{token}</bdi>
        </span>
      )}
    </>
  );
}

// Reads of the audit log, page by page.

/** Events that are read at once; more come on demand. */
const MAX_EVENTS_PER_PAGE = 100;

/** A page, and the time from which events count: it is the same for all pages of a list. */
interface AuditPage {
  readonly pageToken: string;
  readonly timeFrom?: string;
}

const firstPage: AuditPage = { pageToken: "" };

const auditOf = (organization: string, search: AuditSearch) => {
  const { range, from: _from, to: _to, ...chosen } = search;
  const bounds = boundsIn(search);
  /** A range that ends now begins where it did when the first page was read. */
  const startOf = (): string | undefined => {
    const startMs = bounds?.fromMs ?? (range && Date.now() - RANGES[range][1] * 1_000);
    return startMs === undefined ? undefined : new Date(startMs).toISOString();
  };
  return infiniteQueryOptions({
    queryKey: ["audit", organization, search],
    queryFn: async ({ pageParam, signal }) => {
      const timeFrom = pageParam.timeFrom ?? startOf();
      const read = await organizations.listAuditEvents(
        {
          ...{ organization, ...chosen, pageSize: MAX_EVENTS_PER_PAGE },
          pageToken: pageParam.pageToken,
          ...(timeFrom !== undefined && { timeFrom }),
          ...(bounds !== undefined && { timeBefore: new Date(bounds.toMs).toISOString() }),
        },
        { signal },
      );
      return { ...read, timeFrom };
    },
    initialPageParam: firstPage,
    getNextPageParam: ({ nextPageToken, timeFrom }): AuditPage | undefined =>
      nextPageToken
        ? { pageToken: nextPageToken, ...(timeFrom !== undefined && { timeFrom }) }
        : undefined,
  });
};

/** What a member who is no admin sees in the place of a page for admins. */
function AdminsOnly() {
  const organization = useOrganization();
  return (
    <Empty inPage title="This is for admins">
      <p>Ask an admin of the organization for what you need from here.</p>
      <Link to="/o/$organization/members" params={{ organization }} className="button">
        See who they are
      </Link>
    </Empty>
  );
}
