/** The contract of metrics over time, for any database. Each test gets a database of its own. */
import { describe, expect, test } from "vitest";
import type {
  HistoryQuestion,
  HistoryRow,
  MetricsStorage,
} from "../../../src/storage/metrics/metrics.ts";
import type { CreateDatabase } from "../contract.ts";

const KEY = { organizationId: "acme", deploymentId: "d1", resolutionMs: 10_000 };

function row(beganAtMs: number, more: Partial<HistoryRow> = {}): HistoryRow {
  return {
    ...KEY,
    beganAtMs,
    recorder: "r1",
    platform: `{"at":${beganAtMs}}`,
    custom: "[]",
    ...more,
  };
}

const ASKED: HistoryQuestion = {
  ...KEY,
  fromMs: 0,
  toMs: 1_000_000,
  withCustom: false,
  limit: 100,
};

export function historyContract(name: string, createDatabase: CreateDatabase): void {
  const it = (testName: string, run: (metrics: MetricsStorage) => Promise<void>): void =>
    test(testName, async () => {
      await using database = await createDatabase();
      await using storage = await database.open();
      await run(storage.metrics);
    });

  describe(`metrics over time on ${name}`, () => {
    it("returns what was measured by time and recorder, without its end", async (metrics) => {
      const rows = [row(20_000), row(10_000, { recorder: "r2" }), row(10_000), row(30_000)];
      await metrics.putHistory({ rows });
      const read = await metrics.readHistory({ ...ASKED, fromMs: 10_000, toMs: 30_000 });
      expect(read).toEqual([
        { beganAtMs: 10_000, recorder: "r1", platform: '{"at":10000}', custom: "" },
        { beganAtMs: 10_000, recorder: "r2", platform: '{"at":10000}', custom: "" },
        { beganAtMs: 20_000, recorder: "r1", platform: '{"at":20000}', custom: "" },
      ]);
      const [first] = await metrics.readHistory({ ...ASKED, withCustom: true });
      expect(first?.custom).toBe("[]");
    });

    it("keeps organizations, deployments and resolutions apart", async (metrics) => {
      const others = [
        { organizationId: "globex" },
        { deploymentId: "d2" },
        { deploymentId: "" },
        { resolutionMs: 60_000 },
      ];
      await metrics.putHistory({ rows: others.map((other) => row(10_000, other)) });
      expect(await metrics.readHistory(ASKED)).toEqual([]);
      for (const other of others) {
        expect(await metrics.readHistory({ ...ASKED, ...other })).toHaveLength(1);
      }
    });

    it("replaces a row that is written again", async (metrics) => {
      await metrics.putHistory({ rows: [row(10_000)] });
      await metrics.putHistory({ rows: [row(10_000, { platform: "{}", custom: "[1]" })] });
      expect(await metrics.readHistory({ ...ASKED, withCustom: true })).toEqual([
        { beganAtMs: 10_000, recorder: "r1", platform: "{}", custom: "[1]" },
      ]);
    });

    it("goes on after a row, as many as are asked for", async (metrics) => {
      const rows = [row(10_000), row(10_000, { recorder: "r2" }), row(20_000)];
      await metrics.putHistory({ rows });
      const [first] = await metrics.readHistory({ ...ASKED, limit: 1 });
      const rest = await metrics.readHistory({ ...ASKED, ...(first && { after: first }) });
      expect(rest.map(({ beganAtMs, recorder }) => [beganAtMs, recorder])).toEqual([
        [10_000, "r2"],
        [20_000, "r1"],
      ]);
    });

    it("deletes the oldest rows of a resolution, as many as may go at once", async (metrics) => {
      const rows = Array.from({ length: 250 }, (_, index) => row(index * 10_000));
      await metrics.putHistory({ rows: [...rows, row(0, { resolutionMs: 60_000 })] });
      const prune = { resolutionMs: 10_000, beforeMs: 2_000_000, limit: 150 };
      expect(await metrics.pruneHistory(prune)).toBe(150);
      const [oldest] = await metrics.readHistory({ ...ASKED, toMs: 3_000_000, limit: 1 });
      expect(oldest?.beganAtMs).toBe(1_500_000);
      expect(await metrics.pruneHistory(prune)).toBe(50);
      expect(await metrics.pruneHistory(prune)).toBe(0);
      expect(await metrics.readHistory({ ...ASKED, resolutionMs: 60_000 })).toHaveLength(1);
    });
  });
}
