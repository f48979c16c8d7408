/** Charts of what the service counts itself, under a heading of their own. */
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { type ReactNode, useId, useMemo } from "react";
import { messageOf } from "../../api/errors.ts";
import { declaredMetricsOf, type MetricsRange, ownMetricsOf } from "../../api/metrics.ts";
import { useOrganization } from "../../api/session.ts";
import { Command } from "../../ui/command.tsx";
import { Loading } from "../../ui/loading.tsx";
import { Notice } from "../../ui/notice.tsx";
import { Chart } from "./chart.tsx";
import { type OwnChart, ownCharts } from "./own-lines.ts";
import type { Plotted } from "./plot.ts";

interface OwnMetricsProps extends Pick<Plotted, "marks" | "onZoom"> {
  readonly deployment: string;
  readonly range: MetricsRange;
}

export function OwnMetrics({ deployment, range, ...rest }: OwnMetricsProps) {
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
      <Group title="The service's own metrics" anchor="own-metrics">
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
  /** What leads to it. */
  readonly anchor?: string;
  readonly children: ReactNode;
}

function Group({ title, anchor, children }: GroupProps) {
  const id = useId();
  return (
    <section className="own-metrics" id={anchor} aria-labelledby={id}>
      <div className="own-metrics-title">
        <h2 id={id}>{title}</h2>
        <a href="#platform-metrics">Platform metrics ↑</a>
      </div>
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
          title={chart.name}
          help={chart.help}
          detail={chart.detail}
          {...shown}
          lines={chart.lines}
          format={chart.format}
          binary={chart.binary}
          note={noteOf(chart)}
        />
      ))}
    </div>
  );
}

function noteOf({ more, leftOut }: OwnChart): string | undefined {
  const kept =
    leftOut > 0
      ? `${leftOut} or more are not kept, because a deployment has room for 100: give the metric fewer labels.`
      : "";
  const lower = more > 0 ? `and ${more} more with lower values.` : "";
  return [lower, kept].filter(Boolean).join(" ") || undefined;
}

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
