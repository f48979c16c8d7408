/** The contract of the port for samples, for any database. Each test gets a database of its own. */
import { describe, expect, test } from "vitest";
import type { MetricsStorage, SampleRow } from "../../../src/storage/metrics/metrics.ts";
import type { CreateDatabase } from "../contract.ts";

const ROW: SampleRow = {
  organizationId: "acme",
  layoutId: "layout-1",
  layout: "what it is about",
  takenAtMs: 1_000,
  samples: "AAAA",
};

export function metricsContract(name: string, createDatabase: CreateDatabase): void {
  const it = (testName: string, run: (metrics: MetricsStorage) => Promise<void>): void =>
    test(testName, async () => {
      await using database = await createDatabase();
      await using storage = await database.open();
      await run(storage.metrics);
    });
  const listed = (metrics: MetricsStorage, nowMs: number, organizationId = "acme") =>
    metrics.listSamples({ organizationId, exceptNodeId: "reader", nowMs, withinMs: 20_000 });

  describe(`metrics contract on ${name}`, () => {
    it("shows a node's samples to the others and not to itself", async (metrics) => {
      await metrics.putSamples({ nodeId: "writer", nowMs: 5_000, rows: [ROW] });
      const { layoutId, takenAtMs, samples } = ROW;
      expect(await listed(metrics, 6_000)).toEqual([
        { nodeId: "writer", layoutId, takenAtMs, samples },
      ]);
      const own = { organizationId: "acme", exceptNodeId: "writer", nowMs: 6_000 };
      expect(await metrics.listSamples({ ...own, withinMs: 20_000 })).toEqual([]);
    });

    it("keeps organizations apart", async (metrics) => {
      const rows = [ROW, { ...ROW, organizationId: "globex", samples: "BBBB" }];
      await metrics.putSamples({ nodeId: "writer", nowMs: 5_000, rows });
      expect((await listed(metrics, 6_000)).map(({ samples }) => samples)).toEqual(["AAAA"]);
      expect((await listed(metrics, 6_000, "globex")).map(({ samples }) => samples)).toEqual([
        "BBBB",
      ]);
    });

    it("replaces the samples under a layout that is there", async (metrics) => {
      await metrics.putSamples({ nodeId: "writer", nowMs: 5_000, rows: [ROW] });
      const { layout, ...row } = { ...ROW, takenAtMs: 2_000, samples: "CCCC" };
      const refused = await metrics.putSamples({ nodeId: "writer", nowMs: 6_000, rows: [row] });
      expect(refused).toEqual([]);
      expect(await listed(metrics, 7_000)).toMatchObject([{ takenAtMs: 2_000, samples: "CCCC" }]);
      const key = { organizationId: "acme", nodeId: "writer" };
      expect(await metrics.getLayout({ ...key, layoutId: "layout-1" })).toBe(layout);
      expect(await metrics.getLayout({ ...key, layoutId: "layout-2" })).toBeUndefined();
    });

    it("refuses samples of a layout that is not there, and of no other row", async (metrics) => {
      const { layout, ...row } = ROW;
      const rows = [row, { ...ROW, organizationId: "globex" }];
      expect(await metrics.putSamples({ nodeId: "writer", nowMs: 5_000, rows })).toEqual(["acme"]);
      await metrics.putSamples({ nodeId: "writer", nowMs: 5_000, rows: [ROW] });
      const other = { ...row, layoutId: "layout-2" };
      expect(await metrics.putSamples({ nodeId: "writer", nowMs: 5_000, rows: [other] })).toEqual([
        "acme",
      ]);
      expect(await listed(metrics, 6_000)).toMatchObject([{ layoutId: "layout-1" }]);
      const whole = { ...other, layout: `${layout} and more` };
      await metrics.putSamples({ nodeId: "writer", nowMs: 5_000, rows: [whole] });
      expect(await listed(metrics, 6_000)).toMatchObject([{ layoutId: "layout-2" }]);
    });

    it("leaves out nodes that have not written for long, and deletes them later", async (metrics) => {
      await metrics.putSamples({ nodeId: "gone", nowMs: 5_000, rows: [ROW] });
      await metrics.putSamples({ nodeId: "there", nowMs: 24_000, rows: [ROW] });
      expect((await listed(metrics, 25_000)).map(({ nodeId }) => nodeId)).toEqual([
        "gone",
        "there",
      ]);
      expect((await listed(metrics, 25_001)).map(({ nodeId }) => nodeId)).toEqual(["there"]);
      await metrics.pruneSamples({ nowMs: 25_001, afterMs: 20_000 });
      const key = { organizationId: "acme", layoutId: "layout-1" };
      expect(await metrics.getLayout({ ...key, nodeId: "gone" })).toBeUndefined();
      expect(await metrics.getLayout({ ...key, nodeId: "there" })).toBe(ROW.layout);
    });

    it("forgets a node at once when it says so: wholly, or for an organization", async (metrics) => {
      const rows = [ROW, { ...ROW, organizationId: "globex" }];
      await metrics.putSamples({ nodeId: "writer", nowMs: 5_000, rows });
      await metrics.putSamples({ nodeId: "other", nowMs: 5_000, rows });
      await metrics.dropSamples({ nodeId: "writer", organizationId: "acme" });
      expect((await listed(metrics, 6_000)).map(({ nodeId }) => nodeId)).toEqual(["other"]);
      expect(await listed(metrics, 6_000, "globex")).toHaveLength(2);
      await metrics.dropSamples({ nodeId: "writer" });
      expect(await listed(metrics, 6_000, "globex")).toHaveLength(1);
    });
  });
}
