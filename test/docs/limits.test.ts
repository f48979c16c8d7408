import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { constants } from "../../scripts/limits/constants.ts";
import { evaluate } from "../../scripts/limits/evaluate.ts";
import { format } from "../../scripts/limits/kinds.ts";
import { NOT_LIMITS } from "../../scripts/limits/not-limits.ts";
import { isNoLimit, LIMITS_PATH, limits, limitsDocument } from "../../scripts/limits.ts";
import { modules, read } from "../architecture/imports.ts";

describe("intervals and limits", () => {
  it("are listed as they are in docs/limits.md (node scripts/limits.ts writes it)", () => {
    expect(readFileSync(LIMITS_PATH, "utf8")).toBe(limitsDocument());
  });

  it("end with their unit, or begin with MAX_, MIN_ or DEFAULT_", () => {
    const escaped = constants.filter((it) => it.kind === undefined && !isNoLimit(it));
    expect(escaped.map(({ file, name, value }) => `${file} ${name} = ${value}`)).toEqual([]);
  });

  it("say what they bound", () => {
    const silent = constants.filter((it) => it.kind !== undefined && it.doc === undefined);
    expect(
      silent.filter((it) => !isNoLimit(it)).map(({ file, name }) => `${file} ${name}`),
    ).toEqual([]);
  });

  it("are all read, whatever their initializer is", () => {
    const found = new Set(constants.map(({ file, name }) => `${file} ${name}`));
    const declared = modules.flatMap((file) =>
      [
        ...read(file).matchAll(
          /^(?:export )?const ([A-Z][A-Z0-9_]*_(?:MS|SECONDS|DAYS|BYTES|CHARACTERS|LINES|PER_SECOND))\b.*=\s+[^\s{["'`]/gm,
        ),
      ].map(([, name]) => `${file} ${name}`),
    );
    // No bytes at all are an empty value, and no limit.
    const unread = declared.filter((place) => !found.has(place) && !/ NO_BYTES$/.test(place));
    expect(unread).toEqual([]);
    expect(declared.length).toBeGreaterThan(200);
  });

  it("are left out only by names that exist", () => {
    const declared = new Set(constants.map(({ file, name }) => `${file} ${name}`));
    expect([...NOT_LIMITS].filter((place) => !declared.has(place))).toEqual([]);
  });

  it.each([
    ["WORKER_HEARTBEAT_INTERVAL_MS", "100 ms"],
    ["WORKER_HEARTBEAT_TIMEOUT_MS", "2 s"],
    ["LEASE_HEARTBEAT_INTERVAL_MS", "5 s"],
    ["LEASE_DURATION_MS", "20 s"],
    ["NODE_HEARTBEAT_INTERVAL_MS", "3 s"],
    ["NODE_HEARTBEAT_TIMEOUT_MS", "8 s"],
    ["STREAM_HEARTBEAT_INTERVAL_MS", "15 s"],
    ["STREAM_HEARTBEAT_TIMEOUT_MS", "45 s"],
    ["LISTENER_HEARTBEAT_INTERVAL_MS", "15 s"],
  ])("have the heartbeat %s in a table of its own, of %s", (name, value) => {
    const [, heartbeats] = limitsDocument().split("\n## ");
    expect(heartbeats).toMatch(/^Heartbeats\n/);
    expect(heartbeats).toContain(`| \`${name}\` | ${value} |`);
  });

  it("give each heartbeat its interval in one place", () => {
    const intervals = limits().filter(({ name }) => name.endsWith("HEARTBEAT_INTERVAL_MS"));
    expect(new Set(intervals.map(({ name }) => name)).size).toBe(intervals.length);
  });
});

describe("values", () => {
  it.each([
    ["A_MS", 20_000, "20 s"],
    ["A_MS", 90_000, "1.5 min"],
    ["A_MS", 750, "750 ms"],
    ["A_MS", 180 * 86_400_000, "180 d"],
    ["A_SECONDS", 7_200, "2 h"],
    ["A_BYTES", 64 * 1024, "64 KiB"],
    ["A_BYTES", 7_900, "7,900 bytes"],
    ["A_KIB", 4_096, "4 MiB"],
    ["A_CHARACTERS", 8_192, "8,192 characters"],
    ["MAX_TASKS", 10_000, "10,000"],
    ["A_BYTES_PER_SECOND", 8 * 1024 ** 2, "8 MiB per second"],
    ["LIMITS.logLinesPerSecond", 100, "100 per second"],
  ])("of %s, %d, are shown as %s", (name, value, shown) => {
    expect(format(name, value)).toBe(shown);
  });

  it.each([
    ["2 ** 31 - 1", 2 ** 31 - 1],
    ["20 * 1024 ** 3", 20 * 1024 ** 3],
    ["14 * 24 * 3_600_000", 14 * 24 * 3_600_000],
    ["OTHER * 2 + (3 - 1) / 4", 20.5],
    ['"tsrp_".length + 36', 41],
    ["0xff", 255],
    ['"text"', undefined],
    ["UNKNOWN * 2", undefined],
    ["new Set([5])", undefined],
  ])("are computed from %s", (text, value) => {
    expect(evaluate(text, (name) => (name === "OTHER" ? 10 : undefined))).toBe(value);
  });
});
