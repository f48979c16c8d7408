/** The platform as its operator runs it, with a Prometheus that scrapes it and is asked in its place. */
import { openAsBlob, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { prometheusMissing, RealPrometheus } from "../../metrics/prometheus.ts";
import { leftOut } from "../../needed.ts";
import { Program, run } from "../cli/program.ts";
import { until } from "../hosting/world.ts";
import { bearer, Folder } from "./platform.ts";

const PICTURE = fileURLToPath(new URL("../../../examples/digits/images/3-b.png", import.meta.url));
const EMAIL = "you@acme.example";
const OPERATOR = "of-the-operator";
const TEST_MS = 120_000;

const skipped = leftOut(prometheusMissing);

/** `npm start`, once both examples are deployed. */
async function start(folder: Folder, env: Record<string, string>) {
  const args = ["--port", "0", "--data", folder.data];
  const program = new Program(args, { entry: "../../../scripts/start.ts", env });
  await program.says("stdout", /Ctrl-C stops/);
  const said = (pattern: RegExp): string => pattern.exec(program.stdout)?.[1] ?? "";
  const port = said(/runs on http:\/\/localhost:(\d+) /);
  return {
    program,
    address: `localhost:${port}`,
    password: said(/password +(\w{20}) /),
    caller: readFileSync(join(folder.data, "digits.token"), "utf8"),
    developer: readFileSync(join(folder.data, "npm-start.token"), "utf8"),
  };
}

/** Lets acme read its metrics; resolves with a token for that. */
async function monitoringToken(folder: Folder, url: string, password: string): Promise<string> {
  const allow = ["admin", "monitoring", "enable", "--organization", "acme", "--data", folder.data];
  expect(await run(allow)).toMatchObject({ code: 0 });
  const kind = ["--kind", "organization", "--monitoring"];
  const person = ["--endpoint", url, "--email", EMAIL, "--password-stdin"];
  const { code, stdout, stderr } = await run(
    ["token", "create", "prometheus", ...kind, ...person, "-o", "json"],
    { input: `${password}\n` },
  );
  expect(code, stderr).toBe(0);
  return (JSON.parse(stdout) as { value: string }).value;
}

async function classify(url: string, token: string): Promise<unknown> {
  const body = new FormData();
  body.append("image", await openAsBlob(PICTURE, { type: "image/png" }), "3-b.png");
  const headers = { ...bearer(token), "tessera-deployment": "acme/digits" };
  const res = await fetch(`${url}/classify`, { method: "POST", headers, body });
  return await res.json();
}

/** The samples that `/federate` answers, without their times. */
async function federate(url: string, token: string, match: string): Promise<string[]> {
  const path = `/federate?match[]=${encodeURIComponent(match)}`;
  const res = await fetch(url + path, { headers: bearer(token) });
  const text = await res.text();
  expect(res.status, text).toBe(200);
  const lines = text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  return lines.map((line) => line.replace(/ \d+$/, ""));
}

/** The workers of digits over the last hour. */
async function workersOverTime(url: string, token: string): Promise<readonly unknown[]> {
  const path = "/api/v1/metrics?deployment=digits&metrics=workers";
  const res = await fetch(url + path, { headers: bearer(token) });
  const text = await res.text();
  expect(res.status, text).toBe(200);
  const { series } = JSON.parse(text) as { series: [{ values: unknown[] }] };
  return series[0].values;
}

it.skipIf(skipped)(
  `/federate answers what the Prometheus at PROMETHEUS_URL has scraped${skipped}`,
  async () => {
    using folder = new Folder();
    // Each has to know where the other is: this one looks into the file for it.
    const targets = join(folder.path, "targets.json");
    await using prometheus = await RealPrometheus.start({
      scrapes: [
        {
          job_name: "nodes",
          authorization: { credentials: OPERATOR },
          file_sd_configs: [{ files: [targets], refresh_interval: "1s" }],
        },
      ],
      externalLabels: { region: "eu" },
    });
    const platform = await start(folder, {
      PROMETHEUS_URL: prometheus.url,
      TESSERA_METRICS_TOKEN: OPERATOR,
    });
    await using program = platform.program;
    const { address, password, caller, developer } = platform;
    const url = `http://${address}`;
    const monitoring = await monitoringToken(folder, url, password);

    // What it has not scraped yet is not there, although the node has it.
    expect(await classify(url, caller)).toMatchObject({ digit: 3 });
    expect(await federate(url, monitoring, "digits_read_total")).toEqual([]);

    writeFileSync(targets, JSON.stringify([{ targets: [address] }]));
    const [sample = ""] = await until(
      () => federate(url, monitoring, "digits_read_total"),
      (lines) => lines.length > 0,
    );
    expect(sample).toMatch(/^digits_read_total\{.*\} 1$/);
    const labels = { organization: "acme", deployment: "digits", endpoint: "classify", digit: "3" };
    // The last three are of that Prometheus.
    const added = { job: "nodes", instance: address, region: "eu" };
    for (const [name, value] of Object.entries({ ...labels, ...added })) {
      expect(sample).toContain(`${name}="${value}"`);
    }

    // It has the node's own series too, and those of the scrape.
    await prometheus.until("process_start_time_seconds", (value) => value !== undefined);
    const all = await federate(url, monitoring, '{__name__=~".+"}');
    expect(all.some((line) => line.startsWith("tessera_requests_total{"))).toBe(true);
    expect(all.filter((line) => !line.includes('organization="acme"'))).toEqual([]);
    // Over time, what the node has kept itself is answered.
    await until(
      () => workersOverTime(url, developer),
      (workers) => workers.some((value) => Number(value) > 0),
    );
    expect(await program.stop("SIGINT")).toMatchObject({ code: 0 });
  },
  TEST_MS,
);
