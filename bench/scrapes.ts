/**
 * Benchmark of lifecycle latency while a Prometheus scrapes many series each
 * second from the same process, uncompressed and with gzip. The load is that of
 * `lifecycles`; each round runs all three variants, and medians are reported.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { load, Program } from "./program.ts";
import { figure, median, table } from "./table.ts";

const CONNECTIONS = 64;
const EVERY_MS = 1_000;

/** The encodings of the scrapes; undefined: no scrapes. */
const WAYS = new Map([
  ["nobody scrapes", undefined],
  ["uncompressed", "identity"],
  ["gzip", "gzip"],
]);

export interface ScrapesOptions {
  readonly database: string;
  readonly series: number;
  readonly rounds: number;
  readonly seconds: number;
}

interface Round {
  readonly perSecond: number;
  /** Scrapes are part of it. */
  readonly cpuMicros: number;
  readonly p50: number;
  readonly p99: number;
  /** Duration of the longest scrape. */
  readonly scrapeMs: number;
}

export async function benchScrapes(
  { database, series, rounds, seconds }: ScrapesOptions,
  write: (text: string) => void,
): Promise<void> {
  const file = fileURLToPath(new URL("scraped.ts", import.meta.url));
  const { program, match } = await Program.start(
    process.execPath,
    [file, database, String(series)],
    /serving (\d+ \S+)/,
  );
  await using _server = program;
  const [port, url] = match.split(" ");
  const plan = { port: Number(port), connections: CONNECTIONS, endpoint: "noop" };
  await load({ ...plan, seconds: 2 });
  const results = new Map([...WAYS.keys()].map((way) => [way, [] as Round[]]));
  for (let round = 0; round < rounds; round += 1) {
    for (const [way, encoding] of WAYS) {
      const done = new AbortController();
      const scraping = scrape(`${url}/federate`, encoding, done.signal);
      const result = await load({ ...plan, seconds }, [program.pid]);
      done.abort();
      const { p50, p99 } = result.lifecycleMs;
      const { perSecond, cpuMicros } = result;
      results.get(way)?.push({ perSecond, cpuMicros, p50, p99, scrapeMs: await scraping });
    }
  }
  const of = (way: string, figureOf: (round: Round) => number): number =>
    median((results.get(way) ?? []).map(figureOf));
  write(
    `\n${series} series, read once a second, under ${CONNECTIONS} connections: medians of ${rounds} rounds of ${seconds} s\n\n` +
      table(
        ["", "lifecycles/s", "CPU µs", "p50 ms", "p99 ms", "longest scrape, ms"],
        [...WAYS.keys()].map((way) => [
          way,
          figure(of(way, ({ perSecond }) => perSecond)),
          figure(of(way, ({ cpuMicros }) => cpuMicros)),
          figure(
            of(way, ({ p50 }) => p50),
            1,
          ),
          figure(
            of(way, ({ p99 }) => p99),
            1,
          ),
          figure(of(way, ({ scrapeMs }) => scrapeMs)),
        ]),
      ),
  );
}

/** Scrapes until stopped; resolves with the longest duration in milliseconds. */
async function scrape(
  url: string,
  encoding: string | undefined,
  signal: AbortSignal,
): Promise<number> {
  let longestMs = Number.NaN;
  while (encoding !== undefined && !signal.aborted) {
    const begun = performance.now();
    const answer = await fetch(url, { headers: { "accept-encoding": encoding } });
    await answer.arrayBuffer();
    longestMs = Math.max(performance.now() - begun, longestMs || 0);
    await sleep(EVERY_MS, undefined, { signal }).catch(() => {});
  }
  return longestMs;
}
