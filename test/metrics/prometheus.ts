/** A real Prometheus, as Debian packages it, on a free port of 127.0.0.1. */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { stringify } from "yaml";
import { freePort } from "../free-port.ts";

export interface PrometheusOptions {
  /** `scrape_configs`, as the configuration file has them. */
  readonly scrapes?: readonly object[];
  readonly externalLabels?: { readonly [name: string]: string };
}

export class RealPrometheus implements AsyncDisposable {
  readonly url: string;
  /** 2 or 3. */
  readonly major: number;
  readonly #child: ChildProcess;
  readonly #folder: string;

  private constructor(url: string, child: ChildProcess, folder: string) {
    this.url = url;
    this.major = majorVersion();
    this.#child = child;
    this.#folder = folder;
  }

  /** Starts one; fails with what to do where there is none. */
  static async start({
    scrapes = [],
    externalLabels = {},
  }: PrometheusOptions = {}): Promise<RealPrometheus> {
    majorVersion();
    const folder = mkdtempSync(join(tmpdir(), "tessera-prometheus-"));
    const file = join(folder, "prometheus.yml");
    const global = { scrape_interval: "1s", external_labels: externalLabels };
    writeFileSync(file, stringify({ global, scrape_configs: scrapes }));
    const address = `127.0.0.1:${await freePort()}`;
    const child = spawn(
      "prometheus",
      [
        `--config.file=${file}`,
        `--storage.tsdb.path=${join(folder, "data")}`,
        `--web.listen-address=${address}`,
        "--log.level=info",
      ],
      { stdio: ["ignore", "ignore", "pipe"] },
    );
    const lines: string[] = [];
    const ready = new Promise<void>((resolve, reject) => {
      if (child.stderr === null) {
        throw new Error("its output is not connected");
      }
      createInterface(child.stderr).on("line", (line) => {
        lines.push(line);
        if (line.includes("ready to receive web requests")) {
          resolve();
        }
      });
      child.once("error", reject);
      child.once("exit", () => reject(new Error(`prometheus has ended:\n${lines.join("\n")}`)));
    });
    ready.catch(() => undefined);
    await ready;
    return new RealPrometheus(`http://${address}`, child, folder);
  }

  /** Its own answer to `/federate`. */
  async federate(...match: readonly string[]): Promise<{ status: number; text: string }> {
    const query = match.map((one) => `match[]=${encodeURIComponent(one)}`).join("&");
    const response = await fetch(`${this.url}/federate?${query}`);
    return { status: response.status, text: await response.text() };
  }

  /** Asks it until it has an answer that fits; the query is one of PromQL. */
  async until(query: string, fits: (value: string | undefined) => boolean): Promise<void> {
    for (;;) {
      const url = `${this.url}/api/v1/query?query=${encodeURIComponent(query)}`;
      const { data } = (await (await fetch(url)).json()) as {
        data: { result: { value: [number, string] }[] };
      };
      if (fits(data.result[0]?.value[1])) {
        return;
      }
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#child.removeAllListeners("exit");
    if (this.#child.exitCode === null) {
      const exited = once(this.#child, "exit");
      this.#child.kill("SIGKILL");
      await exited;
    }
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

let known: number | undefined;

/** Which Prometheus there is; throws with what to do where there is none. */
export function majorVersion(): number {
  if (known === undefined) {
    const { stdout, stderr, error } = spawnSync("prometheus", ["--version"], { encoding: "utf8" });
    const version = /version (\d+)\./.exec(`${stdout}${stderr}`)?.[1];
    if (error || version === undefined) {
      throw new Error(
        "these tests compare with a real Prometheus, and `prometheus` is not on the PATH: apt-get install prometheus",
        { cause: error },
      );
    }
    known = Number(version);
  }
  return known;
}

/** For tests that are left out without one; undefined where there is one. */
export const prometheusMissing: string | undefined = hasPrometheus()
  ? undefined
  : "there is no prometheus on the PATH";

function hasPrometheus(): boolean {
  try {
    return majorVersion() > 0;
  } catch {
    return false;
  }
}
