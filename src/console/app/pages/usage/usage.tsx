/** Usage: who used what, over days and in all. */
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import type { ReactNode } from "react";
import type { GetUsageResponseJson } from "../../../../../gen/tessera/v1/usage_pb.js";
import { messageOf } from "../../api/errors.ts";
import { useOrganization } from "../../api/session.ts";
import { usageOf } from "../../api/usage.ts";
import { USAGE_KEYS, type UsageBy } from "../../api/usage-keys.ts";
import { Button } from "../../ui/button.tsx";
import { DataTable } from "../../ui/data-table.tsx";
import { Empty } from "../../ui/empty.tsx";
import { Field } from "../../ui/field.tsx";
import { Loading } from "../../ui/loading.tsx";
import { Notice } from "../../ui/notice.tsx";
import { Page } from "../../ui/page.tsx";
import { count } from "../../ui/quantity.ts";
import { save } from "../../ui/save.ts";
import { Segments } from "../../ui/segments.tsx";
import { Chart } from "../charts/chart.tsx";
import { Budgets } from "./budgets.tsx";
import { DAYS, readUsageSearch, type UsageSearch } from "./usage-search.ts";
import {
  COUNTED,
  csvOf,
  daysOf,
  linesOf,
  totalOf,
  type UsedAmounts,
  unitsOf,
  usedBy,
} from "./usage-sums.ts";
import "./usage.css";

const route = getRouteApi("/signed-in/o/$organization/usage");

const LABELS: Readonly<Record<UsageBy, string>> = {
  deployment: "Deployment",
  endpoint: "Endpoint",
  token: "Token",
};

export function Usage() {
  const organization = useOrganization();
  const search: UsageSearch = route.useSearch();
  const { by = "deployment", days = 30 } = search;
  const { data, error } = useQuery({
    ...usageOf(organization, by, days),
    placeholderData: keepPreviousData,
  });
  const isEmpty = (data?.sums ?? []).length === 0;
  return (
    <Page
      title="Usage"
      description="Who used what. Days in UTC."
      actions={
        <Button
          disabled={isEmpty}
          onClick={() => data && save(csvOf(data, by), `${organization}-usage.csv`, "text/csv")}
        >
          Export CSV
        </Button>
      }
    >
      <Choices search={search} units={data ? unitsOf(data) : []} />
      {error && <Notice kind="error">{messageOf(error)}</Notice>}
      {data === undefined ? (
        !error && <Loading />
      ) : isEmpty ? (
        <Empty inPage title="Nothing was used in this time">
          <p>Calls and tasks of the organization's deployments are counted here, by token.</p>
        </Empty>
      ) : (
        <Shown answer={data} by={by} measure={search.of ?? "run_seconds"} />
      )}
      <Budgets units={data ? unitsOf(data) : []} />
    </Page>
  );
}

interface ChoicesProps {
  readonly search: UsageSearch;
  readonly units: readonly string[];
}

function Choices({ search, units }: ChoicesProps) {
  const navigate = useNavigate();
  const change = (changed: Record<string, unknown>) =>
    void navigate({ to: ".", search: readUsageSearch({ ...search, ...changed }), replace: true });
  const { by = "deployment", of = "run_seconds", days = 30 } = search;
  const isKnown = COUNTED.some(({ name }) => name === of) || units.includes(of);
  return (
    <section className="filters" aria-label="What is shown">
      <Choice label="Group by">
        <Segments
          label="Group by"
          choices={USAGE_KEYS.map((key) => LABELS[key])}
          value={LABELS[by]}
          onChange={(label) => change({ by: USAGE_KEYS.find((key) => LABELS[key] === label) })}
        />
      </Choice>
      <Choice label="Time range">
        <Segments
          label="Time range"
          choices={DAYS.map((one) => `${one} d` as const)}
          value={`${days} d`}
          onChange={(label) => change({ days: Number.parseInt(label, 10) })}
        />
      </Choice>
      <Field label="Measure">
        {(control) => (
          <select {...control} value={of} onChange={({ target }) => change({ of: target.value })}>
            {COUNTED.map(({ name, label }) => (
              <option key={name} value={name}>
                {label}
              </option>
            ))}
            {[...units, ...(isKnown ? [] : [of])].map((unit) => (
              <option key={unit} value={unit}>
                {unit}
              </option>
            ))}
          </select>
        )}
      </Field>
    </section>
  );
}

/** Segments with their name above them, as fields have it. */
function Choice({ label, children }: { readonly label: string; readonly children: ReactNode }) {
  return (
    <div className="usage-choice">
      <span aria-hidden="true">{label}</span>
      {children}
    </div>
  );
}

/** The key of the row of all: no name has a space. */
const TOTAL = "all of them";

interface ShownProps {
  readonly answer: GetUsageResponseJson;
  readonly by: UsageBy;
  readonly measure: string;
}

function Shown({ answer, by, measure }: ShownProps) {
  const used = usedBy(answer, by, measure);
  const days = daysOf(answer);
  const {
    label = measure,
    format = count,
    isBinary,
  } = COUNTED.find(({ name }) => name === measure) ?? {};
  const lines = linesOf(used, days, measure);
  const others = used.filter((one) => totalOf(one, measure) > 0).length - lines.length;
  const all = { sums: answer.sums ?? [] };
  const shown = [
    ...COUNTED.filter(({ name }) => name !== "gpu_seconds" || totalOf(all, name) > 0),
    ...unitsOf(answer).map((name) => ({ name, label: name, format: count })),
  ];
  return (
    <>
      {answer.truncated && (
        <Notice kind="warning">There is more than is shown: choose fewer days.</Notice>
      )}
      <section aria-labelledby="days">
        <h2 id="days" className="hidden">
          Day by day
        </h2>
        <Chart
          title={`${label} per day`}
          isDaily
          times={days.map((day) => Date.parse(day) / 1_000)}
          lines={lines}
          format={format}
          binary={isBinary}
          numbers={[[format(totalOf(all, measure)), `in ${days.length} days`]]}
          note={others > 0 ? `${others} more are only in the table.` : undefined}
          empty="Nothing was used in this time."
        />
      </section>
      <section aria-labelledby="all">
        <h2 id="all">Totals</h2>
        <DataTable<UsedAmounts>
          label="Usage"
          items={[...used, { key: TOTAL, name: "Total", ...all }]}
          keyOf={({ key }) => key}
          columns={[
            { name: LABELS[by], cell: (each) => <Name of={each} by={by} /> },
            ...shown.map((one) => ({
              name: one.label,
              isNumber: true,
              cell: (each: UsedAmounts) => one.format(totalOf(each, one.name)),
            })),
          ]}
        />
        <p className="hint">
          Refused calls aren't counted here; see a deployment's metrics, where each submit of a task
          is a call as well.
        </p>
      </section>
    </>
  );
}

interface NameProps {
  readonly of: UsedAmounts;
  readonly by: UsageBy;
}

/** A deployment leads to its page. */
function Name({ of: { key, name }, by }: NameProps) {
  const organization = useOrganization();
  return by === "deployment" && key !== TOTAL ? (
    <Link to="/o/$organization/deployments/$deployment" params={{ organization, deployment: key }}>
      {name}
    </Link>
  ) : (
    <bdi>{name}</bdi>
  );
}
