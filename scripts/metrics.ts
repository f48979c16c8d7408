/** Generates docs/metrics.md from the declarations of metrics; a test keeps the two in step. */
import { writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { MAX_ORGANIZATION_SAMPLES } from "../src/metrics/custom-families.ts";
import {
  type Declaration,
  LABELS,
  type LabelDeclaration,
  METRICS,
} from "../src/metrics/declarations.ts";
import { MAX_EXPOSED_SERIES } from "../src/metrics/exposed-metrics.ts";
import { formatNumber } from "../src/metrics/number.ts";
import {
  MAX_BUCKETS,
  MAX_LABEL_VALUE_CHARACTERS,
  MAX_LABELS,
  MAX_METRICS,
} from "../src/sdk/metric-rules.ts";

export const METRICS_PATH = fileURLToPath(new URL("../docs/metrics.md", import.meta.url));

const OWN_LABELS = {
  deployment: ["organization", "deployment", "node"],
  organization: ["organization", "node"],
  node: ["node"],
} as const;

/** The whole document. */
export function metricsDocument(): string {
  const of = (whose: Declaration["of"]): readonly Declaration[] =>
    Object.values<Declaration>(METRICS).filter((declaration) => declaration.of === whose);
  return `# Metrics

This page is generated from \`src/metrics/declarations.ts\` by \`node scripts/metrics.ts\`.

An organization reads its own metrics at \`GET /federate\` with a monitoring token, from its own Prometheus:

\`\`\`yaml
scrape_configs:
  - job_name: tessera
    honor_labels: true
    metrics_path: /federate
    params:
      match[]: ['{__name__=~".+"}']
    authorization:
      credentials: tsrm_…
    static_configs:
      - targets: [tessera.example.com]
\`\`\`

The operator of the platform enables monitoring tokens for an organization. An admin asks for them with \`tessera org ask-for-monitoring\` or in the form of a new token in the console (\`AskForMonitoring\`, \`POST /api/v1/organizations/{organization}:askForMonitoring\`); the operator sees who asked on the console's page of the platform and with \`tessera admin organizations\`, and answers with \`tessera admin monitoring enable --organization NAME\`, or with \`disable\`, which ends the request, too.

The semantics are those of Prometheus' own \`/federate\`: one or more \`match[]\` (at most 1,000), each an instant vector selector; the newest sample of each series within five minutes, with its timestamp; \`instance=""\` and the configured external labels on series that lack them. With several nodes, any of them answers for all; samples of the other nodes are up to five seconds old, and those of a node that is down are omitted after twenty seconds, so scrape every ten seconds or less often.

With \`PROMETHEUS_URL\`, \`/federate\` queries that Prometheus instead of the nodes, with the organization added to every selector. That Prometheus must scrape \`/metrics\` of all nodes; series of other programs are visible only if their label \`organization\` names the organization.

A dashboard for Grafana is in [grafana/tessera.json](grafana/tessera.json).

The operator reads all metrics at \`GET /metrics\` of each node with \`TESSERA_METRICS_TOKEN\` as a bearer token; without that setting, every request is refused. \`GET /metrics\` on the host of a deployment, and under \`tessera serve\`, shows this node's metrics of that deployment to everyone who may call it.

## Over time

Each node stores what it measures in the platform's database, for charts: \`QueryMetrics\` (\`GET /api/v1/metrics\`, \`tessera deployment metrics\`) returns calls and errors, latency, queue and run time, tasks, workers and their memory, and the metrics of the service itself, of one deployment or of the organization together. An hour is kept at steps of 10 seconds, a day at a minute, and a week at 10 minutes; an answer has at most 1,440 points, so that each is answered whole. A node writes one batch every 10 seconds, and nothing for deployments that rest. \`ListMetrics\` (\`GET /api/v1/deployments/{deployment}/metrics\`) lists the metrics of the service with their kind, help and unit. Of these, 100 series of a deployment are kept on each node, in about 16 KB: the first of each metric in turns. Answers say how many are left out (\`left_out\`). A node that is killed loses at most the last minute.

The console draws all of it on the deployment's page **Metrics**: the last 15 minutes to 7 days, or a range that is drawn over a chart and is then in the address. All charts have one cursor, a mark where each revision was deployed, and the number that they are looked at for: how many calls, with those that failed; for durations, the p50 and p95 of all that was measured in the range (\`whole\` of each series, which is no average of its steps). A number that is not of the range but of now says so. A line that lies on another is dashed, and the legend names the one that it equals. Lines that are 0 all the time are not drawn. Counts are per minute. Where nothing happened a sentence says so. **Service** shows what the service counts itself, and below it what libraries and servers expose. Calls are calls of endpoints, submits of tasks, and retries of one task. Retries of many tasks at once, tasks of a schedule (also of one that is run by hand), and other requests about tasks, such as those of the console's pages, are not counted.

\`GetTaskStats\` (\`GET /api/v1/organizations/{organization}/task-stats\`) has the numbers of tasks of a window up to now, and of calls, each by deployment and endpoint, with the codes of calls that failed, from the same rows and from the counters of the queues. It reads no task: with 1,000,000 finished tasks it answers in as many milliseconds as with none ([decision 62](decisions/0062-statistics-of-tasks-are-read-from-kept-tallies.md) has the figures).

## Series

A series of a deployment ends when the deployment leaves the node. A metric has at most 2,000 series per organization and node; events beyond that are counted by \`tessera_series_dropped_total\`.

${ofServices()}

## Of libraries and servers

What programs in a worker expose in the format of Prometheus is exported too, without a declaration:

- what a Python service, or a library in it, counts with [prometheus_client](https://prometheus.github.io/client_python/) in its default registry, once something has imported it. \`bentoml.metrics\` is the same;
- what a [mounted server](servers.md) says at the path that its author names: \`mount("/", app, metrics="/metrics")\`, \`{ app, metrics: "/internal/metrics" }\`. The path is below that of the server, which decides itself whether others get an answer there. Redirects are followed within the server.

A metric that several of them have is taken of the first, because they may show the same registry.

| | as it is shown, with the labels \`organization\`, \`deployment\`, \`node\` |
|---|---|
| counter | the sum over workers; counts of workers that have ended remain |
| gauge, untyped | the sum over the workers that are up. The average where its name ends with \`_ratio\`, \`_percent\`, \`_percentage\`, \`_perc\` or \`_celsius\`, the largest where it ends with \`_info\`, \`_timestamp\` or \`_timestamp_seconds\`. In Python, \`multiprocess_mode\` goes first where that is \`min\`, \`max\` or \`sum\`, with or without \`live\` |
| histogram | the sum over workers |
| summary | a histogram without buckets, whose \`_sum\` and \`_count\` are the sums over workers. Quantiles are left out: those of several workers cannot be put together |
| info, enum | gauges |

The registry is read every second, and less often where that takes more than 2 % of a worker's time; a server is asked every 5 s, in a request that takes no slot, and has 5 s to answer with at most 1 MiB. What a worker counts before it stops is counted; what one that is killed has counted since it was read last is lost. A counter that goes down has begun anew, and is added as a whole.

A page that cannot be read, in whole or in part, fails nothing: the log of the service says once why, and \`tessera_metrics_unread_total\` counts it.

A label \`organization\`, \`deployment\`, \`node\`, \`instance\` or \`job\` is shown with \`exported_\` before its name, as in a Prometheus that scrapes it. Left out are: names with the prefixes that are reserved above, \`_created\`, what a program says of its own process (\`process_…\`, \`python_gc_…\`, \`python_info\`), values that are not finite, and what has more than 20 labels, 100 buckets, or 500 characters in a value. All that is exposed in a deployment has at most ${MAX_EXPOSED_SERIES.toLocaleString("en")} series on a node, each bucket counted as one; changes beyond that are counted by \`tessera_series_dropped_total{metric="other"}\`. Over time, it has the room that the service's own metrics leave of the 100 series, the first of each metric in turns.

Processes that a worker starts are counted together with it by [the multiprocess mode of prometheus_client](https://prometheus.github.io/client_python/multiprocess/). Its folder has to be the worker's own: where \`PROMETHEUS_MULTIPROC_DIR\` is in the environment of the deployment, each worker is given a new folder within it. One that the code names itself has to be new for each process: \`os.environ["PROMETHEUS_MULTIPROC_DIR"] = tempfile.mkdtemp()\`, before prometheus_client is imported.

## Of deployments

These have the labels ${names(OWN_LABELS.deployment)} in addition to their own.

${table([...of("deployment"), ...of("organization")])}

## Of nodes

For operators only, with the label ${names(OWN_LABELS.node)}.

${table(of("node"))}

## Labels

| label | meaning | values |
|---|---|---|
${Object.entries<LabelDeclaration>(LABELS)
  .map(([name, { help, values }]) => {
    const listed = values ? `${names(values)}, \`other\`` : "names";
    return `| \`${name}\` | ${help} | ${listed} |`;
  })
  .join("\n")}
`;
}

/** The part for authors of services. */
function ofServices(): string {
  return `## Of services

A service declares its own metrics and updates them through \`ctx.metrics\`:

\`\`\`ts
import { api, counter, gauge, histogram, service, type SetupContext, type TaskContext } from "tessera-platform";
import * as z from "zod";

const metrics = {
  tokens_total: counter({ help: "Tokens that were read", labels: ["model"] }),
  models_loaded: gauge({ help: "Models in memory" }),
  score: histogram({ help: "Scores that were given", buckets: [0.5, 0.9, 0.99] }),
};

@service({ name: "reader", metrics })
export default class Reader {
  setup(ctx: SetupContext<typeof metrics>) {
    ctx.metrics.models_loaded.set(1);
  }

  @api({ input: { text: z.string() } })
  read({ text }: { text: string }, ctx: TaskContext<typeof metrics>) {
    ctx.metrics.tokens_total.add(text.split(" ").length, { model: "small" });
    ctx.metrics.score.observe(0.95);
  }
}
\`\`\`

Without decorators, write \`service({ name, metrics, endpoints })\`, and \`(args, ctx: TaskContext<typeof metrics>) => …\` in its endpoints. Using a metric or a label that the service does not declare is a type error.

| | declared with | updated with | labels in addition to ${names(OWN_LABELS.deployment)} | from several workers of a node |
|---|---|---|---|---|
| counter | \`help\`, \`labels\` | \`add(amount, labels)\`, 1 by default | \`endpoint\`, its own | their sum; counts of workers that have ended remain |
| gauge | \`help\`, \`labels\`, \`aggregator\` | \`set(value, labels)\`, \`add(amount, labels)\` | its own: it describes the worker, whichever endpoint sets it | the \`aggregator\`, which is \`"sum"\` (default), \`"min"\`, \`"max"\` or \`"average"\`, over the workers that are up and have set it |
| histogram | \`help\`, \`labels\`, \`buckets\` (default 0.005 to 10) | \`observe(value, labels)\` | \`endpoint\`, its own | their sum, as of counters |

The metrics appear under their declared names on the same pages as the platform's: \`/metrics\` of the deployment and of the node, and \`/federate\`. Updates of a call are visible by the time its caller has the answer; a running call sends its updates every second. Updates not yet sent when a worker is killed are lost.

Names consist of letters, digits and \`_\`, as in Prometheus; the prefixes \`tessera_\`, \`process_\`, \`scrape_\` and \`ALERTS\`, and the name \`up\`, are reserved. By convention, the name of a counter ends with \`_total\`, other names with their unit. A service has at most ${MAX_METRICS} metrics, a metric at most ${MAX_LABELS} labels and ${MAX_BUCKETS} buckets; label values are truncated to ${MAX_LABEL_VALUE_CHARACTERS} characters. The labels \`organization\`, \`deployment\`, \`endpoint\`, \`node\`, \`instance\`, \`job\`, \`le\` and \`quantile\` are reserved. A service with an invalid declaration does not load, and the error says why.

Updating a metric never throws and never waits. An invalid value (negative for a counter, not finite, a missing label) is ignored, and the deployment's log says so once for each metric and worker. On a node, a deployment has at most 2,000 label sets per metric, and an organization at most ${MAX_ORGANIZATION_SAMPLES.toLocaleString("en")} samples for all metrics of its services, counting each histogram bucket as one; updates beyond that are counted by \`tessera_series_dropped_total\`.

A metric continues if a new revision declares it unchanged. If the revision changes its labels, buckets, kind or aggregator, or removes it, the old metric ends when the revision takes over, and its series disappear immediately.`;
}

function table(declarations: readonly Declaration[]): string {
  return `| metric | kind | labels | meaning |
|---|---|---|---|
${declarations
  .map(({ name, kind, labels, help, buckets }) => {
    const bounds = buckets ? `; buckets up to ${buckets.map(formatNumber).join(", ")} s` : "";
    return `| \`${name}\` | ${kind} | ${names(labels)} | ${help}${bounds} |`;
  })
  .join("\n")}`;
}

function names(list: readonly string[]): string {
  return list.map((name) => `\`${name}\``).join(", ");
}

if (import.meta.main) {
  writeFileSync(METRICS_PATH, metricsDocument());
}
