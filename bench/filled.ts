/** Metrics with a given number of series, most of them histograms, as in practice. */
import { METRICS } from "../src/metrics/declarations.ts";
import { Metrics } from "../src/metrics/metrics.ts";

export const ORGANIZATION_ID = "one";
export const DEPLOYMENT_LABELS = { organization: "acme", deployment: "digits", node: "n1" };
export const CODES = ["ok", "not_found", "internal", "unavailable"];

/** Creates metrics with about this many series in one organization. */
export function filled(series: number): Metrics {
  const metrics = new Metrics({ node: "n1", now: Date.now, maxSeries: series });
  const perEndpoint = 2 * (METRICS.requestDuration.buckets.length + 3) + 8;
  for (let index = 0; index < series / perEndpoint; index += 1) {
    const deployment = metrics.deployment({
      organizationId: ORGANIZATION_ID,
      ...DEPLOYMENT_LABELS,
      deployment: `deployment-${index % 100}`,
    });
    const endpoint = `endpoint-${index}`;
    for (const protocol of ["http", "grpc"] as const) {
      for (const code of CODES) {
        deployment.requestFinished(endpoint, { protocol, code, seconds: (index % 77) / 7 });
      }
    }
  }
  return metrics;
}
