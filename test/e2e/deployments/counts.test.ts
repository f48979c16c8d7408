import { describe, expect, it } from "vitest";
import { DeploymentCounts } from "../../../src/deployments/counts.ts";
import { expose } from "../../../src/metrics/exposition.ts";
import { Metrics } from "../../../src/metrics/metrics.ts";
import type { MetricManifest } from "../../../src/protocol/manifest.ts";
import { whole } from "../../metrics/fixture.ts";
import { Hosting } from "./hosting.ts";

/** A class that counts its calls under these metrics, and whether it is up. */
const SERVICE = (declarations = "", call = "", setup = "") => `
  import { api, counter, gauge, histogram, service, task } from "tessera-platform";
  import * as z from "zod";
  const help = "Counted by a test";
  const metrics = { calls_total: counter({ help }), up_workers: gauge({ help }), ${declarations} };
  @service({ name: "anything", metrics })
  export default class {
    async setup({ metrics }) { metrics.up_workers.set(1); ${setup} }
    @api({}) go(_, { metrics }) { metrics.calls_total.add(); ${call} return process.pid; }
    @task({}) async hang(_, { metrics }) {
      metrics.calls_total.add(10);
      await new Promise((resolve) => setTimeout(resolve, 60_000));
    }
  }`;

async function counting(workers = 1) {
  const metrics = new Metrics({ node: "n1", now: Date.now });
  const hosting = await Hosting.start({ workers, counted: { metrics, organizationId: "acme" } });
  const lines = async (): Promise<string[]> =>
    (await whole(expose(metrics)))
      .split("\n")
      .filter((line) => line !== "" && !/^(#|tessera_|process_)/.test(line))
      .map((line) => line.replace(/,?(deployment|node|organization)="[^"]*"/g, ""))
      .map((line) => line.replace("{,", "{").replace("{}", ""))
      .toSorted();
  return { hosting, lines };
}

describe("what a service counts", () => {
  it("is there when its caller has the answer, from each worker", async () => {
    const { hosting, lines } = await counting(2);
    await using _ = hosting;
    await hosting.deploy(SERVICE());
    await Promise.all(Array.from({ length: 20 }, () => hosting.call("go")));
    expect(await lines()).toContain('calls_total{endpoint="go"} 20');
    await expect.poll(lines).toContain("up_workers 2");
  });

  it("does not go down when a worker is killed, but a gauge knows that it is gone", async () => {
    const { hosting, lines } = await counting();
    await using _ = hosting;
    await hosting.deploy(SERVICE());
    await hosting.submit("hang");
    const pid = await hosting.call("go");
    // What a call counts that has not ended comes too.
    await expect
      .poll(lines)
      .toEqual([
        ...['calls_total{endpoint="go"} 1', 'calls_total{endpoint="hang"} 10', "up_workers 1"],
      ]);
    process.kill(pid as number, "SIGKILL");
    const call = () => hosting.call("go").catch(() => pid);
    await expect.poll(call).not.toBe(pid);
    // Had the first one still a part in it, there would be two.
    expect(await lines()).toContain("up_workers 1");
    expect(await lines()).toContainEqual(
      expect.stringMatching(/^calls_total\{endpoint="go"\} ([2-9]|\d\d+)$/),
    );
  });

  it("goes on under a new revision, and begins anew where that declares it otherwise", async () => {
    const { hosting, lines } = await counting();
    await using _ = hosting;
    await hosting.deploy(
      SERVICE(
        "size: gauge({ help, labels: ['a'] }), old_total: counter({ help })",
        "metrics.size.set(3, { a: 'x' }); metrics.old_total.add();",
      ),
    );
    await hosting.call("go");
    const before = await lines();
    expect(before).toEqual(expect.arrayContaining(['size{a="x"} 3', 'old_total{endpoint="go"} 1']));
    await hosting.deploy(
      SERVICE(
        "size: gauge({ help, labels: ['b'] }), new_total: counter({ help })",
        "metrics.size.set(4, { b: 'y' });",
        "metrics.new_total.add(7);",
      ),
    );
    await hosting.call("go");
    const after = await lines();
    expect(after).toEqual(
      expect.arrayContaining(['calls_total{endpoint="go"} 2', 'size{b="y"} 4']),
    );
    // Counted before the revision served.
    expect(after).toContain("new_total 7");
    expect(after.join()).not.toMatch(/size\{a=|old_total/);
  });

  it("is not touched by a revision that cannot start", async () => {
    const { hosting, lines } = await counting();
    await using _ = hosting;
    await hosting.deploy(SERVICE());
    await hosting.call("go");
    const broken = SERVICE("more_total: counter({ help })", "", "throw new Error('broken')");
    await expect(hosting.deploy(broken)).rejects.toThrow("broken");
    const undeclarable = SERVICE("tessera_workers: gauge({ help })");
    await expect(hosting.deploy(undeclarable)).rejects.toThrow(
      'service "anything": metric "tessera_workers" has a name of the platform or of Prometheus',
    );
    await hosting.call("go");
    expect(await lines()).toContain('calls_total{endpoint="go"} 2');
  });

  it("ends with the deployment", async () => {
    const { hosting, lines } = await counting();
    await hosting.deploy(SERVICE());
    await hosting.call("go");
    await hosting[Symbol.asyncDispose]();
    expect(await lines()).toEqual([]);
  });
});

describe("a worker of a revision that does not serve yet", () => {
  const help = "Counted by a test";
  const total: MetricManifest = { name: "total", kind: "counter", help, labels: [] };
  const gauge: MetricManifest = { name: "is", kind: "gauge", help, labels: [] };
  const manifest = (...metrics: MetricManifest[]) => ({ name: "x", endpoints: [], metrics });
  const message = (...changes: readonly (readonly [metric: string, value: number])[]) => ({
    type: "metrics" as const,
    changes: changes.map(([metric, value]) => ({ metric, labels: [], value })),
    dropped: [{ metric: "total", events: 1 }],
  });

  function counting() {
    const metrics = new Metrics({ node: "n1", now: Date.now });
    const measured = { organizationId: "1", organization: "acme", deployment: "x" };
    const { custom } = metrics.deployment(measured);
    const values = () =>
      metrics
        .groupsOf("1")
        .flatMap(({ samples }) => [...samples.values()].flat())
        .map((series) => `${series.name} ${series.value()}`);
    return { counts: new DeploymentCounts(), custom, values };
  }

  it("has what it counted added when its revision serves", () => {
    const { counts, custom, values } = counting();
    counts.serve(custom, manifest(total));
    const early = counts.worker("a", manifest(total, gauge));
    expect(early.take(message(["total", 2], ["is", 1]))).toBeUndefined();
    expect(values()).toEqual([]);
    counts.serve(custom, manifest(total, gauge));
    expect(values()).toEqual(["tessera_series_dropped_total 1", "total 2", "is 1"]);
    early.take(message(["total", 1]));
    expect(values()).toContain("total 3");
    early.end();
    // What it sent before it ended may come after that.
    early.take(message(["total", 1], ["is", 5]));
    expect(values()).toEqual(["tessera_series_dropped_total 3", "total 4", "is undefined"]);
  });

  it("has a bounded number of numbers and labels kept", () => {
    const { counts, custom, values } = counting();
    const buckets = Array.from({ length: 50 }, (_, index) => index);
    const size = { name: "size", kind: "histogram" as const, help, labels: [], buckets };
    const early = counts.worker("a", manifest(size));
    const change = { metric: "size", labels: [], value: 1, counts: Array(51).fill(1) };
    for (let index = 0; index < 4; index += 1) {
      early.take({ type: "metrics", changes: Array(500).fill(change), dropped: [] });
    }
    counts.serve(custom, manifest(size));
    expect(values()).toContain("size_sum 500");
  });

  it("has no part in anything when it never does", () => {
    const { counts, custom, values } = counting();
    const early = counts.worker("a", manifest(gauge, total));
    for (let index = 0; index < 3_000; index += 1) {
      early.take(message(["total", 1]));
    }
    early.end();
    counts.serve(custom, manifest(gauge, total));
    expect(values()).toEqual([]);
  });
});
