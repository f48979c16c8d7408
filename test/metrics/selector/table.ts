/**
 * Selectors, good and bad, with what Prometheus 2.42 and the parser of
 * Prometheus 3.15 make of them. `prometheus.test.ts` asks the one that is
 * installed again.
 */
import { readFileSync } from "node:fs";

export interface TableRow {
  readonly selector: string;
  /** Whether they accept it. */
  readonly prometheus2: boolean;
  readonly prometheus3: boolean;
  /** What Prometheus 3 says against it. */
  readonly error?: string;
}

export const TABLE: readonly TableRow[] = readFileSync(
  new URL("selectors.jsonl", import.meta.url),
  "utf8",
)
  .trimEnd()
  .split("\n")
  .map((line) => JSON.parse(line) as TableRow);
