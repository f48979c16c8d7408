/** Writes docs/metrics.md from the declarations; a test holds the two together. */
import { writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import {
  type Declaration,
  LABELS,
  type LabelDeclaration,
  METRICS,
} from "../src/metrics/declarations.ts";
import { formatNumber } from "../src/metrics/number.ts";

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
      match[]: ['{__name__=~"tessera_.*"}']
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
