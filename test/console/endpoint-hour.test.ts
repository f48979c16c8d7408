import { expect, it } from "vitest";
import { endpointHour } from "../../src/console/app/pages/deployments/endpoint-hour.ts";

const STATS = {
  endpoints: [
    {
      endpoint: "train",
      stats: { succeeded: 7, failed: 2, cancelled: 1, running: 3, runTime: { p95: "4.500s" } },
    },
  ],
  endpointCalls: [
    { endpoint: "", calls: 4, failedCalls: 4 },
    { endpoint: "/shop", calls: 1 },
    { endpoint: "/shop/items/{number}", calls: 5, failedCalls: 2, callTime: { p95: "0.200s" } },
    { endpoint: "/shopping", calls: 50 },
    { endpoint: "read", calls: 10, failedCalls: 1, callTime: { p95: "0.034s" } },
    { endpoint: "train", calls: 12, callTime: { p95: "0.010s" } },
  ],
};
const hourOf = (name: string, kind: "API" | "TASK" | "SERVER") =>
  endpointHour({ name, kind: `ENDPOINT_KIND_${kind}` }, STATS);

it("the hour of an api is that of its calls, and that of a task endpoint of its tasks that ended", () => {
  expect(hourOf("read", "API")).toEqual({ count: 10, failed: 1, p95Ms: 34 });
  expect(hourOf("train", "TASK")).toEqual({ count: 10, failed: 2, p95Ms: 4_500 });
  expect(hourOf("rests", "API")).toEqual({ count: 0, failed: 0, p95Ms: undefined });
  expect(hourOf("rests", "TASK")).toEqual({ count: 0, failed: 0, p95Ms: undefined });
});

it("the hour of a mounted server is that of all its routes, which have no percentile together", () => {
  expect(hourOf("/shop", "SERVER")).toEqual({ count: 6, failed: 2, p95Ms: undefined });
  expect(hourOf("/shopping/", "SERVER")).toMatchObject({ count: 0 });
  expect(hourOf("/shopping", "SERVER")).toMatchObject({ count: 50 });
});
