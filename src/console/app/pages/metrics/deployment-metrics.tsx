/** What was measured of a deployment over a range of time, with its roll-outs. */
import { keepPreviousData, useQuery, useSuspenseQuery } from "@tanstack/react-query";
import { getRouteApi, useNavigate } from "@tanstack/react-router";
import { type ButtonHTMLAttributes, type ReactNode, useId, useMemo } from "react";
import { revisionsOf } from "../../api/deployments.ts";
import { messageOf } from "../../api/errors.ts";
import {
  declaredMetricsOf,
  type MetricsRange,
  metricsOf,
  ownMetricsOf,
} from "../../api/metrics.ts";
import { useOrganization } from "../../api/session.ts";
import { Button } from "../../ui/button.tsx";
import { Command } from "../../ui/command.tsx";
import { Filters } from "../../ui/filters.tsx";
import { Icon } from "../../ui/icon.tsx";
import { Loading } from "../../ui/loading.tsx";
import { Notice } from "../../ui/notice.tsx";
import { RangePicker } from "../../ui/range-picker.tsx";
import { Segments } from "../../ui/segments.tsx";
import {
  atLeast,
  boundsIn,
  type NamedRange,
  rangeWords,
  SINCE_DEPLOY,
  type TimeBounds,
} from "../../ui/time-range.ts";
import { Chart } from "../charts/chart.tsx";
import { Charts } from "../charts/charts.tsx";
import { DeploymentFrame } from "../deployments/frame.tsx";
import { type MetricsSearch, namedRange } from "./metrics-search.ts";
import { type OwnChart, ownCharts } from "./own-lines.ts";
import "./metrics.css";
import type { Mark, Plotted } from "../charts/plot.ts";
import { CHARTS, metricsFor } from "../charts/shown.ts";

const route = getRouteApi("/signed-in/o/$organization/deployments/$deployment/metrics");

const METRICS = metricsFor(CHARTS.all);

/** The shortest range of charts: nodes store what they measured every ten seconds. */
const MIN_RANGE_MS = 60_000;

/** The longest: as long as it is kept. */
const MAX_RANGE_MS = 604_800_000;

/** A younger deployment is shown from its beginning, because half of the last hour would be empty. */
const YOUNG_MS = 1_800_000;

export function DeploymentMetrics() {
  return (
    <DeploymentFrame title="Metrics">
      {({ name = "", createdAt = "" }) => (
        <MetricsView
          deployment={name}
          standard={Date.now() - Date.parse(createdAt) < YOUNG_MS ? SINCE_DEPLOY : "1h"}
        />
      )}
    </DeploymentFrame>
  );
}

interface MetricsViewProps {
  readonly deployment: string;
  /** The range that is shown where the address names none. */
  readonly standard: NamedRange;
}

/** Whose metrics are shown. */
const SHOWN = ["Platform", "Service"] as const;

function MetricsView({ deployment, standard }: MetricsViewProps) {
  const search: MetricsSearch = route.useSearch();
  const navigate = useNavigate();
  const organization = useOrganization();
  const bounds = boundsIn(search);
  const go = (to: MetricsSearch): void =>
    void navigate({ to: ".", search: { ...to }, resetScroll: false });
  const zoom = (to: TimeBounds): void => {
    const { fromMs, toMs } = atLeast(to, MIN_RANGE_MS);
    const { show } = search;
    go({ ...(show && { show }), from: fromMs, to: toMs });
  };
  const { data: revisions } = useSuspenseQuery(revisionsOf(organization, deployment));
  const marks = useMemo(
    () =>
      revisions
        .map(({ revision, createdAt = "" }): Mark => {
          return { timeMs: Date.parse(createdAt), name: `r${revision}` };
        })
        .reverse(),
    [revisions],
  );
  const newest = marks.at(-1);
  const isKept = newest !== undefined && newest.timeMs > Date.now() - MAX_RANGE_MS;
  const named = namedRange(search.range ?? standard, isKept ? newest.timeMs : undefined);
  const range = bounds ?? named.range;
  const shown = typeof range === "number" ? lastOf(range) : { toMs: Date.now(), ...range };
  const drawn = { deployment, range, marks, onZoom: zoom };
  return (
    <>
      <Filters
        className="metrics-range"
        first={
          <Segments
            label="Metrics of"
            choices={SHOWN}
            value={search.show === "service" ? "Service" : "Platform"}
            onChange={(chosen) => {
              const { show, ...rest } = search;
              go(chosen === "Service" ? { ...rest, show: "service" } : rest);
            }}
          />
        }
        chosen={[]}
        label={
          <>
            <span className="hidden">Time range: </span>
            <span className="metrics-shown">
              {rangeWords({ ...search, range: named.name }, Date.now())}
            </span>
          </>
        }
      >
        <RangePicker
          search={{ ...search, range: named.name }}
          standard={standard}
          sinceDeploy={isKept ? `Since ${newest.name}` : undefined}
        />
        <Moves range={shown} onMove={zoom} />
      </Filters>
      {search.show === "service" ? <OwnMetrics {...drawn} /> : <PlatformMetrics {...drawn} />}
    </>
  );
}

interface ShownMetricsProps extends Pick<Plotted, "marks" | "onZoom"> {
  readonly deployment: string;
  readonly range: MetricsRange;
}

/** Charts of what the platform measures. */
function PlatformMetrics({ deployment, range, ...rest }: ShownMetricsProps) {
  const organization = useOrganization();
  const { data, error, isPlaceholderData } = useQuery({
    ...metricsOf({ organization, deployment, metrics: METRICS, range }),
    placeholderData: keepPreviousData,
  });
  return (
    <>
      <h2 className="hidden">Charts</h2>
      {error !== null && <Notice kind="error">{messageOf(error)}</Notice>}
      {data === undefined ? (
        error === null && <Loading />
      ) : (
        <div aria-busy={isPlaceholderData} className="measured">
          <Charts charts={CHARTS.all} measured={data} {...rest} />
        </div>
      )}
    </>
  );
}

function lastOf(seconds: number): TimeBounds {
  const toMs = Date.now();
  return { fromMs: toMs - seconds * 1_000, toMs };
}

interface MovesProps {
  readonly range: TimeBounds;
  onMove(to: TimeBounds): void;
}

/** What a pointer does on a chart, by keys: earlier, later, nearer, farther. */
function Moves({ range: { fromMs, toMs }, onMove }: MovesProps) {
  const halfMs = (toMs - fromMs) / 2;
  const by = (beginMs: number, endMs: number) => () =>
    onMove({ fromMs: Math.floor(fromMs + beginMs), toMs: Math.ceil(toMs + endMs) });
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset belongs to a form, and these buttons are in no form
    <div className="moves" role="group" aria-label="Move the time range">
      <Move label="Earlier" icon="M10 3 5 8l5 5" onClick={by(-halfMs, -halfMs)} />
      <Move
        label="Later"
        icon="m6 3 5 5-5 5"
        disabled={toMs + halfMs > Date.now()}
        onClick={by(halfMs, halfMs)}
      />
      <Move
        label="Zoom in"
        title="Zoom in: also by drawing over a chart"
        icon="M8 3v10M3 8h10"
        disabled={halfMs < MIN_RANGE_MS}
        onClick={by(halfMs / 2, -halfMs / 2)}
      />
      <Move
        label="Zoom out"
        icon="M3 8h10"
        disabled={halfMs * 4 > MAX_RANGE_MS}
        onClick={by(-halfMs, toMs + halfMs > Date.now() ? 0 : halfMs)}
      />
    </div>
  );
}

interface MoveProps extends ButtonHTMLAttributes<HTMLButtonElement> {
  readonly label: string;
  readonly icon: string;
}

function Move({ label, icon, ...rest }: MoveProps) {
  return (
    <Button kind="icon" aria-label={label} title={label} {...rest}>
      <Icon path={icon} />
    </Button>
  );
}

/** Charts of what the service counts itself, and of what libraries and servers in it expose. */
function OwnMetrics({ deployment, range, ...rest }: ShownMetricsProps) {
  const organization = useOrganization();
  const declared = useQuery(declaredMetricsOf({ organization, deployment }));
  const measured = useQuery({
    ...ownMetricsOf({ organization, deployment, range }),
    placeholderData: keepPreviousData,
  });
  const metrics = declared.data?.metrics;
  const answer = measured.data;
  const times = useMemo(() => (answer?.times ?? []).map(Number), [answer]);
  const charts = useMemo(
    () => (metrics && answer ? ownCharts(metrics, answer) : undefined),
    [metrics, answer],
  );
  const error = declared.error ?? measured.error;
  const own = charts?.filter(({ isDeclared }) => isDeclared) ?? [];
  const others = charts?.filter(({ isDeclared }) => !isDeclared) ?? [];
  const shown = { times, ...rest };
  return (
    <>
      <Group title="The service's own metrics" isHidden>
        {charts !== undefined ? (
          own.length > 0 ? (
            <OwnCharts charts={own} shown={shown} />
          ) : (
            <NoMetrics />
          )
        ) : error ? (
          <Notice kind="error">{messageOf(error)}</Notice>
        ) : (
          <Loading />
        )}
      </Group>
      {others.length > 0 && (
        <Group title="Of libraries and servers">
          <p className="secondary">
            What they expose in the format of Prometheus, and what earlier revisions declared.
          </p>
          <OwnCharts charts={others} shown={shown} />
        </Group>
      )}
    </>
  );
}

interface GroupProps {
  readonly title: string;
  /** The title is hidden, because the choice above it says the same. */
  readonly isHidden?: boolean;
  readonly children: ReactNode;
}

function Group({ title, isHidden = false, children }: GroupProps) {
  const id = useId();
  return (
    <section aria-labelledby={id}>
      <h2 id={id} className={isHidden ? "hidden" : undefined}>
        {title}
      </h2>
      {children}
    </section>
  );
}

interface OwnChartsProps {
  readonly charts: readonly OwnChart[];
  readonly shown: Pick<Plotted, "times" | "marks" | "onZoom">;
}

function OwnCharts({ charts, shown }: OwnChartsProps) {
  return (
    <div className="charts">
      {charts.map((chart) => (
        <Chart
          key={chart.name}
          title={chart.help || chart.name}
          name={chart.help ? chart.name : undefined}
          detail={chart.detail}
          {...shown}
          lines={chart.lines}
          numbers={chart.numbers}
          format={chart.format}
          binary={chart.binary}
          isFitted={chart.isFitted}
          note={noteOf(chart)}
        />
      ))}
    </div>
  );
}

const noteOf = ({ leftOut }: OwnChart): string | undefined =>
  leftOut > 0
    ? `${leftOut} or more are not kept, because a deployment has room for 100: give the metric fewer labels.`
    : undefined;

function NoMetrics() {
  return (
    <div className="card own-empty">
      <p>This service counts nothing itself yet. Declare a metric where it is defined:</p>
      <Command text={`metrics: { pages_total: counter({ help: "Pages that were read." }) }`} />
      <p>Then count in a function, and deploy it again:</p>
      <Command text="ctx.metrics.pages_total.add(1);" />
    </div>
  );
}
