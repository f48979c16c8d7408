/** Charts of what the service counts itself, under a heading of their own. */
import { useQuery } from "@tanstack/react-query";
import { useId, useMemo } from "react";
import { messageOf } from "../../api/errors.ts";
import { declaredMetricsOf, ownMetricsOf } from "../../api/metrics.ts";
import { useOrganization } from "../../api/session.ts";
import { Command } from "../../ui/command.tsx";
import { Loading } from "../../ui/loading.tsx";
import { Notice } from "../../ui/notice.tsx";
import { Chart } from "./chart.tsx";
import { type OwnChart, ownCharts } from "./own-lines.ts";

interface OwnMetricsProps {
  readonly deployment: string;
  /** How far back, in seconds. */
  readonly seconds: number;
}

export function OwnMetrics(props: OwnMetricsProps) {
  const id = useId();
  return (
    <section className="own-metrics" aria-labelledby={id}>
      <h2 id={id}>The service's own metrics</h2>
      <OwnCharts {...props} />
    </section>
  );
}

function OwnCharts({ deployment, seconds }: OwnMetricsProps) {
  const organization = useOrganization();
  const declared = useQuery(declaredMetricsOf({ organization, deployment }));
  const measured = useQuery(ownMetricsOf({ organization, deployment, seconds }));
  const metrics = declared.data?.metrics;
  const answer = measured.data;
  const times = useMemo(() => (answer?.times ?? []).map(Number), [answer]);
  const charts = useMemo(
    () => (metrics && answer ? ownCharts(metrics, answer) : undefined),
    [metrics, answer],
  );
  if (charts === undefined) {
    const error = declared.error ?? measured.error;
    return error ? <Notice kind="error">{messageOf(error)}</Notice> : <Loading />;
  }
  if (charts.length === 0) {
    return <NoMetrics />;
  }
  return (
    <div className="charts">
      {charts.map((chart) => (
        <Chart
          key={chart.name}
          title={chart.name}
          help={chart.help}
          detail={chart.detail}
          times={times}
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
