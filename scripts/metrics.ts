/** Writes docs/metrics.md from the declarations; a test holds the two together. */
import { writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { MAX_SAMPLES } from "../src/metrics/custom-families.ts";
import {
  type Declaration,
  LABELS,
  type LabelDeclaration,
  METRICS,
} from "../src/metrics/declarations.ts";
import { formatNumber } from "../src/metrics/number.ts";
import {
  MAX_BUCKETS,
  MAX_LABEL_VALUE_LENGTH,
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

This page is made from \`src/metrics/declarations.ts\` by \`node scripts/metrics.ts\`.

An organization reads its own metrics at \`GET /federate\` with a monitoring token, for a Prometheus of its own:

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

The semantics are those of Prometheus' own \`/federate\`: one or more \`match[]\` (at most 1,000), each an instant vector selector; the newest sample of each series within five minutes, with its time; \`instance=""\` and the configured external labels where a series does not have them. Where several nodes run, any of them answers for all; what the others have counted is up to five seconds old, and a node that fell is left out after twenty, so scrape every ten seconds or less often.

With \`PROMETHEUS_URL\`, \`/federate\` asks the Prometheus there instead of the nodes, with the organization added to every selector as a condition. That one has to scrape \`/metrics\` of all nodes; what it has of other programs is shown only where it carries the organization's name in the label \`organization\`.

A dashboard for Grafana is in [grafana/tessera.json](grafana/tessera.json).

The operator reads everything at \`GET /metrics\` of each node with \`TESSERA_METRICS_TOKEN\` as a bearer token; without that setting it answers nobody. \`GET /metrics\` on the host of a deployment, and under \`tessera serve\`, shows what this node has counted of the one deployment, to whoever may call it.

A series of a deployment ends when the deployment leaves the node. A metric has at most 2,000 series per organization and node; what would need more is counted by \`tessera_series_dropped_total\`.

${ofServices()}

## Of deployments

These have the labels ${names(OWN_LABELS.deployment)} besides their own.

${table([...of("deployment"), ...of("organization")])}

## Of nodes

For operators only, with the label ${names(OWN_LABELS.node)}.

${table(of("node"))}

## Labels

| label | what it says | values |
|---|---|---|
${Object.entries<LabelDeclaration>(LABELS)
  .map(([name, { help, values }]) => {
    const listed = values ? `${names(values)}, \`other\`` : "names";
    return `| \`${name}\` | ${help} | ${listed} |`;
  })
  .join("\n")}
`;
}

/** The part for those who write services. */
function ofServices(): string {
  return `## Of services

A service counts what only it knows by declaring metrics and using them through \`ctx.metrics\`:

\`\`\`ts
import { api, counter, gauge, histogram, service, type SetupContext, type TaskContext } from "tessera";
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

In a service of functions it is the same: \`service({ name, metrics, endpoints })\`, and \`(args, ctx: TaskContext<typeof metrics>) => …\` in its endpoints. A metric or a label that is not declared, and an endpoint that counts what its service does not declare, are errors of the type checker.

| | declared with | counted with | labels besides ${names(OWN_LABELS.deployment)} | from several workers of a node |
|---|---|---|---|---|
| counter | \`help\`, \`labels\` | \`add(amount, labels)\`, 1 by default | \`endpoint\`, its own | their sum; what a worker has counted stays when it ends |
| gauge | \`help\`, \`labels\`, \`aggregator\` | \`set(value, labels)\`, \`add(amount, labels)\` | its own: it says something of the worker, whichever endpoint sets it | the \`aggregator\`, which is \`"sum"\` (default), \`"min"\`, \`"max"\` or \`"average"\`, over the workers that are up and have set it |
| histogram | \`help\`, \`labels\`, \`buckets\` (default 0.005 to 10) | \`observe(value, labels)\` | \`endpoint\`, its own | their sum, as of counters |

The metrics are shown under the names that they are declared with, on the same pages as the platform's: \`/metrics\` of the deployment and of the node, and \`/federate\`. When a caller has the answer to a call, what the call counted is there; what a call counts that goes on comes every second. What it had not sent yet when its worker was killed is lost.

Names have letters, digits and \`_\`, as Prometheus wants them; \`tessera_\`, \`process_\`, \`scrape_\` and \`ALERTS\` at the beginning, and \`up\`, are taken. By convention the name of a counter ends with \`_total\`, and others with their unit. A service has at most ${MAX_METRICS} metrics, a metric ${MAX_LABELS} labels and ${MAX_BUCKETS} buckets; a value of a label has at most ${MAX_LABEL_VALUE_LENGTH} characters, and the rest of a longer one is cut off. The labels \`organization\`, \`deployment\`, \`endpoint\`, \`node\`, \`instance\`, \`job\`, \`le\` and \`quantile\` are not for services. A declaration that breaks a rule keeps the service from loading, and says why.

Counting never throws and never waits. A value that cannot be counted (below zero for a counter, no finite number, a label that is missing) is left out, and the log of the deployment says so once for each metric and worker. Of one metric a deployment has at most 2,000 sets of labels on a node, and of all metrics of their services an organization has at most ${MAX_SAMPLES.toLocaleString("en")} samples there, of which each bucket of a histogram is one; what goes beyond is counted by \`tessera_series_dropped_total\`.

A metric that a new revision declares in the same way goes on. One that it declares with other labels, buckets, kind or aggregator, or no more, ends when the revision takes over, and its series are left out at once.`;
}

function table(declarations: readonly Declaration[]): string {
  return `| metric | kind | labels | what it says |
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
