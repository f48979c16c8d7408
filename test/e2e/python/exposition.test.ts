/**
 * What libraries in a Python service count with prometheus_client: its own registry is on the pages
 * of the platform, whatever callers and authors write into it.
 */
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { prometheusMissing } from "../../metrics/prometheus.ts";
import { lint } from "../../metrics/promtool.ts";
import { leftOut } from "../../needed.ts";
import { Program } from "../cli/program.ts";
import { environment, pythonMissing } from "../clients/python-environment.ts";
import { fixture } from "./hosted.ts";

export const PACKAGES = ["pydantic>=2", "fastapi", "uvicorn", "prometheus_client"];

const skipped = leftOut(pythonMissing);

describe.skipIf(skipped)(`prometheus_client in a service${skipped}`, () => {
  let python: string;
  let program: Program;
  let url: string;
  const serve = (workers: number, env: Record<string, string> = {}) => {
    const file = fixture("exposition/service.py");
    const passed = Object.keys(env).flatMap((name) => ["--env", name]);
    const args = [file, "--python", python, "--workers", String(workers), ...passed];
    return Program.serve(args, { env, limitMs: 600_000 });
  };

  beforeAll(async () => {
    ({ python } = await environment({ name: "exposition", packages: PACKAGES }));
    ({ program, url } = await serve(2));
  }, 300_000);
  afterAll(() => program?.[Symbol.asyncDispose]());

  const call = async (name: string, body: object, base = url): Promise<void> => {
    const headers = { "content-type": "application/json" };
    const sent = { method: "POST", headers, body: JSON.stringify(body) };
    const res = await fetch(`${base}/${name}`, sent);
    expect([name, res.status]).toEqual([name, name === "die" ? 500 : 200]);
    await res.body?.cancel();
  };
  const page = async (base = url) => await (await fetch(`${base}/metrics`)).text();
  /** The value of a series, by its name and a part of its labels. */
  const value = async (name: string, labels = "", base = url): Promise<number | undefined> => {
    const lines = (await page(base)).split("\n");
    const line = lines.find((each) => each.startsWith(`${name}{`) && each.includes(labels));
    return line === undefined ? undefined : Number(line.split(" ").at(-1));
  };

  it("is added up over its workers, also over one that has died", async () => {
    for (let number = 0; number < 20; number += 1) {
      await call("read", { text: "a b c" });
    }
    await expect.poll(() => value("words_total", 'lang="de"')).toBe(60);
    expect(await value("score_bucket", 'le="0.5"')).toBe(20);
    expect(await value("took_seconds_sum")).toBe(10);
    expect(await value("took_seconds_count")).toBe(20);
    expect(await value("oldest_seconds")).toBe(3);
    expect(await value("reader_info", 'version="1"')).toBe(1);
    await expect.poll(() => value("state", 'state="busy"')).toBe(2);
    await call("die", {});
    await call("read", { text: "a" });
    await expect.poll(() => value("words_total", 'lang="de"')).toBe(61);
    expect(await page()).not.toMatch(/^[^#]*(?:python_|_created\{)/m);
  });

  it("harms nobody by what it writes", async () => {
    const said = '"} 1\ntessera_forged 1\n\\';
    await call("say", { text: said });
    const shown = said.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n");
    await expect.poll(() => page()).toContain(`exported_job="own",`);
    const text = await page();
    expect(text).toContain(`said="${shown}"`);
    expect(text).not.toMatch(/^tessera_forged/m);
    expect(text.match(/^tessera_requests_total\{.*\}/gm)?.join()).not.toContain("exported");
    await program.says("stderr", /its libraries are read in part: ."tessera_requests_total." has/);
    if (prometheusMissing === undefined) {
      expect(lint(text)).toEqual([]);
    }
  });

  it("says that a collector fails, and goes on when it works again", async () => {
    const before = (await value("words_total", 'lang="fr"')) ?? 0;
    const { program: one, url: base } = await serve(1);
    await using _ended = one;
    await call("fail", { fails: true }, base);
    await call("read", { text: "a", lang: "fr" }, base);
    await one.says("stderr", /a collector of the test/);
    await call("fail", { fails: false }, base);
    await expect.poll(() => value("words_total", 'lang="fr"', base)).toBe(before + 1);
  });

  it("has 2,000 series at most", async () => {
    const { program: one, url: base } = await serve(1);
    await using _ended = one;
    await call("crowd", { count: 3_000 }, base);
    const own = async () =>
      (await page(base)).split("\n").filter((line) => /^(?!tessera_)\w+\{/.test(line)).length;
    await expect.poll(own).toBeGreaterThan(1_900);
    expect(await own()).toBeLessThanOrEqual(2_000);
  });

  it("counts in the processes that a worker starts, each worker in a folder of its own", async () => {
    const folder = mkdtempSync(join(tmpdir(), "tessera-multiprocess-"));
    try {
      const old = join(folder, "worker-old");
      mkdirSync(old);
      writeFileSync(join(old, "counter_1.db"), "what another worker left");
      const { program: two, url: base } = await serve(2, { PROMETHEUS_MULTIPROC_DIR: folder });
      for (let number = 0; number < 5; number += 1) {
        await call("elsewhere", { amount: 2 }, base);
        await call("read", { text: "a b" }, base);
      }
      await expect.poll(() => value("words_total", 'lang="elsewhere"', base)).toBe(10);
      await expect.poll(() => value("words_total", 'lang="de"', base)).toBe(10);
      await two.stop();
      await two[Symbol.asyncDispose]();
      expect(readdirSync(folder)).toEqual(["worker-old"]);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
});

describe.skipIf(skipped)(`a mounted server that exposes metrics${skipped}`, () => {
  let program: Program;
  let url: string;
  beforeAll(async () => {
    const { python } = await environment({ name: "exposition", packages: PACKAGES });
    const args = [fixture("exposition/scraped.py"), "--python", python, "--workers", "1"];
    ({ program, url } = await Program.serve(args, { limitMs: 600_000 }));
  }, 300_000);
  afterAll(() => program?.[Symbol.asyncDispose]());

  const page = async () => await (await fetch(`${url}/metrics`)).text();
  const valueOfSeries = async (pattern: RegExp): Promise<number> =>
    Number(pattern.exec(await page())?.[1] ?? Number.NaN);
  const mode = async (name: string) => {
    expect((await fetch(`${url}/broken/mode/${name}`, { method: "PUT" })).status).toBe(200);
  };

  it("is read at its path, wherever that sends to, and added up over workers that end", async () => {
    const served = /^served_total\{deployment="shop".*kind="item".*\} (\d+)$/m;
    const counted = /^counted_total\{.*\} (\d+)$/m;
    for (let number = 0; number < 5; number += 1) {
      expect((await fetch(`${url}/items/${number}`)).status).toBe(200);
    }
    await expect.poll(() => valueOfSeries(served)).toBe(5);
    // Both the libraries of the process and a server expose it.
    await expect.poll(() => valueOfSeries(counted)).toBe(5);
    expect((await fetch(`${url}/die`, { method: "POST" })).status).toBe(500);
    await expect.poll(async () => (await fetch(`${url}/items/6`)).status).toBe(200);
    await expect.poll(() => valueOfSeries(served)).toBe(6);
    await expect.poll(() => valueOfSeries(counted)).toBe(6);
    if (prometheusMissing === undefined) {
      expect(lint(await page())).toEqual([]);
    }
  });

  it.each([
    ["missing", /GET .broken.metrics with 404/],
    ["page", /line 1 has no name where one should be: .{0,4}<!doctype/],
    ["moved", /GET .broken.metrics.again with 307/],
    ["large", /more than 1048576 bytes/],
    ["late", /it did not answer within 5 s/],
    ["forged", /read in part: .{1,3}tessera_workers.{1,3} has a name of the platform/],
  ])("fails no page where it is %s, and says so", async (name, line) => {
    await mode(name);
    await program.says("stderr", line);
    const text = await page();
    expect(text).toMatch(/^served_total\{/m);
    expect(text).not.toMatch(/^(?:up|tessera_workers)\{.*deployment="other"/m);
    expect(text).toMatch(/^tessera_metrics_unread_total\{.*\} [1-9]/m);
  });

  it("is read again when it is whole, with labels of its own beside the platform's", async () => {
    await expect.poll(() => page()).toMatch(/^ok\{.*exported_node="x",node="[^x]/m);
    await mode("fine");
    await program.says("stderr", /the metrics of the server at .broken are read again/);
    await expect.poll(() => page()).toMatch(/^fine\{/m);
    expect(await page()).not.toMatch(/^ok\{/m);
  });
});
