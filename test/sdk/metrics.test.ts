import { describe, expect, it } from "vitest";
import { readyService } from "../../src/sdk/describe.ts";
import {
  counter,
  gauge,
  histogram,
  type MetricDeclarations,
  service,
  task,
} from "../../src/sdk/index.ts";
import { serviceDefinitionOf } from "../../src/sdk/service.ts";

const endpoints = { go: task({}, () => 1) };
const help = "Something that is counted";

function declare(metrics: unknown) {
  return service({ name: "one", metrics: metrics as MetricDeclarations, endpoints });
}

describe("metrics of a service", () => {
  it("stand in its manifest, with what they do not say filled in", async () => {
    const exported = declare({
      read_total: counter({ help, labels: ["model"] }),
      loaded: gauge({ help }),
      wait_seconds: histogram({ help }),
    });
    const definition = serviceDefinitionOf(exported);
    const { manifest } = await readyService(exported, definition as never);
    expect(manifest.metrics).toEqual([
      { name: "read_total", kind: "counter", help, labels: ["model"] },
      { name: "loaded", kind: "gauge", help, labels: [], aggregator: "sum" },
      {
        name: "wait_seconds",
        kind: "histogram",
        help,
        labels: [],
        buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
      },
    ]);
  });

  it.each([
    [() => counter({ help, label: ["a"] } as never), "counter(): label is not an option; did you"],
    [() => gauge({ help, agregator: "max" } as never), "; did you mean aggregator?"],
    [() => histogram({ help, bucket: [1] } as never), "; did you mean buckets?"],
  ])("are refused with an option that is not known: %s", (define, said) => {
    expect(define).toThrow(said);
  });

  it("are no part of the manifest of a service that has none", async () => {
    const exported = service({ name: "one", endpoints });
    const { manifest } = await readyService(exported, serviceDefinitionOf(exported) as never);
    expect(manifest).not.toHaveProperty("metrics");
  });

  it("may be as many, with as many labels and buckets, as the limits say", () => {
    const labels = ["a", "b", "c", "d", "e"];
    const buckets = Array.from({ length: 50 }, (_, index) => index);
    const names = Array.from({ length: 50 }, (_, index) => `metric_${index}`);
    const one = histogram({ help, labels, buckets });
    expect(() => declare(Object.fromEntries(names.map((name) => [name, one])))).not.toThrow();
  });

  const named = (name: string) => ({ [name]: counter({ help }) });
  const labelled = (...labels: string[]) => ({ x: counter({ help, labels }) });
  const bucketed = (...buckets: number[]) => ({ x: histogram({ help, buckets }) });
  it.each([
    ["a list", [counter({ help })], /metrics must be an object of counter/],
    ["a name with a hyphen", named("a-b"), /metric "a-b" must have a name of letters, digits/],
    ["a name with a colon", named("job:rate"), /must have a name of letters, digits/],
    ["a name that begins with a digit", named("1st"), /must have a name/],
    ["a long name", named("a".repeat(101)), /at most 100/],
    ["a name of the platform", named("tessera_calls"), /a name of the platform or of Prometheus/],
    ["a name of the node's process", named("process_open_fds"), /a name of the platform/],
    ["a name of Prometheus", named("up"), /a name of the platform or of Prometheus/],
    ["a function", { x: () => 1 }, /metric "x" must be made by counter/],
    ["nothing", { x: undefined }, /metric "x" must be made by counter/],
    ["a kind that there is not", { x: { kind: "summary", help, labels: [] } }, /must be made by/],
    ["no help", { x: counter({ help: " " }) }, /metric "x" needs help/],
    ["six labels", labelled("a", "b", "c", "d", "e", "f"), /has 6 labels, and at most 5/],
    ["a label that is no name", labelled("a b"), /has a label "a b", which is no name/],
    ["a label with two underscores", labelled("__name__"), /has a label "__name__"/],
    ["a label of the platform", labelled("endpoint"), /has a label endpoint, which the platform/],
    ["a label of Prometheus", labelled("le"), /has a label le, which the platform or Prometheus/],
    ["a label twice", labelled("a", "a"), /has the label a twice/],
    ["no buckets", bucketed(), /needs buckets, from 1 to 50/],
    ["51 buckets", bucketed(...Array(51).keys()), /needs buckets, from 1 to 50/],
    ["buckets that fall", bucketed(1, 2, 2), /not finite and rising, at 2/],
    ["an infinite bucket", bucketed(1, Infinity), /at Infinity; \+Inf comes by itself/],
    ["buckets of a counter", { x: { ...counter({ help }), buckets: [1] } }, /has no buckets/],
    ["an unknown aggregator", { x: gauge({ help, aggregator: "last" as "sum" }) }, /aggregator/],
    [
      "51 metrics",
      Object.fromEntries(
        Array.from({ length: 51 }, (_, index) => [`m${index}`, counter({ help })]),
      ),
      /51 metrics are declared, and at most 50 may be/,
    ],
    [
      "a name that a histogram's sum has",
      { x: histogram({ help }), x_sum: counter({ help }) },
      /metric "x_sum" and metric "x" would both have series called x_sum; rename one/,
    ],
  ])("are refused: %s", (_, metrics, reason) => {
    expect(() => declare(metrics)).toThrow(/^service "one": /);
    expect(() => declare(metrics)).toThrow(reason);
  });
});
