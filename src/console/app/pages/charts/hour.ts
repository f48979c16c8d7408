/** What an overview shows of the last hour. */
import { type AskedMetrics, metricsOf } from "../../api/metrics.ts";
import { RANGES } from "../../ui/time-range.ts";
import { CHARTS, metricsFor } from "./shown.ts";

const OF_ALL = metricsFor(CHARTS.few);
const OF_ONE = metricsFor(CHARTS.trend);

/** The metrics of an organization, or of one of its deployments: one request for all that shows them. */
export const hourOf = (of: Pick<AskedMetrics, "organization" | "deployment">) =>
  metricsOf({
    ...of,
    metrics: of.deployment === undefined ? OF_ALL : OF_ONE,
    range: RANGES["1h"][1],
  });
