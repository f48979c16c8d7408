/** Finds the metrics of a service in a Prometheus, which knows names of samples rather than metrics. */
import { type Choice, choose } from "../selector/choose.ts";
import { equals, type Matcher, NAME_LABEL } from "../selector/parse.ts";
import { writeSelector } from "../selector/write.ts";
import type { Upstream } from "../upstream.ts";
import type { HistoryQuery } from "./history.ts";
import type { CustomShape } from "./interval.ts";
import type { Range } from "./range.ts";

/** Names that no service may give its metrics, and those that a Prometheus makes itself. */
const PLATFORM = /^(?:tessera_|process_|scrape_|ALERTS|up$)/;

/** Metrics of a service that are looked for: more are not declared by one. */
const MAX_OWN_METRICS = 50;

export interface OwnMetric {
  readonly name: string;
  readonly kind: CustomShape["kind"];
  readonly choice: Choice;
  /** Conditions that the Prometheus checks itself; `choice` has them, too. */
  readonly matchers: readonly Matcher[];
}

/** The metrics that the selectors of the query choose, by name. */
export async function ownMetrics(
  upstream: Pick<Upstream, "ask">,
  { organization, deployment, selectors, signal }: HistoryQuery,
  { fromMs, stepMs, points }: Range,
): Promise<readonly OwnMetric[]> {
  if (selectors.length === 0 || deployment === undefined) {
    return [];
  }
  const owner = [equals("organization", organization), equals("deployment", deployment.name)];
  const names = await upstream.ask(
    `/api/v1/label/${NAME_LABEL}/values`,
    {
      "match[]": writeSelector({ matchers: owner }),
      start: String(fromMs / 1_000),
      end: String((fromMs + points * stepMs) / 1_000),
    },
    signal,
  );
  const samples = new Set((Array.isArray(names) ? names : []).map(String));
  const found: OwnMetric[] = [];
  for (const [name, isHistogram] of metricsOf(samples)) {
    const choice = choose(selectors, name);
    if (choice !== undefined && found.length < MAX_OWN_METRICS) {
      const kind = isHistogram ? "histogram" : await kindOf(upstream, name, signal);
      found.push({ name, kind, choice, matchers: conditionsOf(selectors) });
    }
  }
  return found;
}

/** Of several selectors, any may hold: then the choice decides alone. */
function conditionsOf([only, ...more]: HistoryQuery["selectors"]): readonly Matcher[] {
  return only === undefined || more.length > 0
    ? []
    : only.matchers.filter(({ label }) => label !== NAME_LABEL);
}

/** Metrics by the names of their samples, and whether they are histograms. */
function* metricsOf(samples: ReadonlySet<string>): Generator<readonly [string, boolean]> {
  for (const sample of samples) {
    const base = sample.replace(/_(?:bucket|sum|count)$/, "");
    const isPart = base !== sample && samples.has(`${base}_bucket`);
    if (PLATFORM.test(sample)) {
      continue;
    }
    if (!isPart) {
      yield [sample, false];
    } else if (sample.endsWith("_bucket")) {
      yield [base, true];
    }
  }
}

/** As the nodes declare it on their pages; by its name where the Prometheus does not know that. */
async function kindOf(
  upstream: Pick<Upstream, "ask">,
  name: string,
  signal: AbortSignal,
): Promise<"counter" | "gauge"> {
  const known = (await upstream.ask("/api/v1/metadata", { metric: name }, signal)) as {
    readonly [metric: string]: readonly { readonly type?: string }[];
  } | null;
  const type = known?.[name]?.[0]?.type;
  return type === "counter" || (type !== "gauge" && name.endsWith("_total")) ? "counter" : "gauge";
}
