/** What tasks used, written in the transactions that store them and their ends. */
import { dayOf } from "../days.ts";
import type { UnitAmounts } from "../hosting/usage.ts";
import type { Statements } from "./rows.ts";

/** What one task, or one attempt, adds. */
interface Used {
  readonly deploymentId: string;
  readonly endpoint: string;
  /** Empty: no token. */
  readonly tokenId: string;
  readonly nowMs: number;
  readonly tasks?: number;
  readonly runMs?: number;
  readonly gpuMs?: number;
  readonly bytesIn?: number;
  readonly bytesOut?: number;
  readonly units?: UnitAmounts | undefined;
}

type Sums = Required<Pick<Used, "tasks" | "runMs" | "gpuMs" | "bytesIn" | "bytesOut">>;

interface Row extends Pick<Used, "deploymentId" | "endpoint" | "tokenId"> {
  readonly day: number;
  readonly sums: { -readonly [name in keyof Sums]: number };
  readonly units: Map<string, number>;
}

/** What was used in the open transaction: one write for each day, endpoint and token. */
export class UsageSums {
  readonly #db: Statements;
  readonly #rows = new Map<string, Row>();

  constructor(db: Statements) {
    this.#db = db;
  }

  add({ deploymentId, endpoint, tokenId, nowMs, units, ...sums }: Used): void {
    const day = dayOf(nowMs);
    const key = `${deploymentId} ${day} ${tokenId} ${endpoint}`;
    let row = this.#rows.get(key);
    if (row === undefined) {
      const none = { tasks: 0, runMs: 0, gpuMs: 0, bytesIn: 0, bytesOut: 0 };
      row = { deploymentId, endpoint, tokenId, day, sums: none, units: new Map() };
      this.#rows.set(key, row);
    }
    row.sums.tasks += sums.tasks ?? 0;
    row.sums.runMs += sums.runMs ?? 0;
    row.sums.gpuMs += sums.gpuMs ?? 0;
    row.sums.bytesIn += sums.bytesIn ?? 0;
    row.sums.bytesOut += sums.bytesOut ?? 0;
    for (const unit in units) {
      row.units.set(unit, (row.units.get(unit) ?? 0) + (units[unit] ?? 0));
    }
  }

  /** Writes what was used; called before every commit. */
  flush(): void {
    for (const { deploymentId, day, endpoint, tokenId, sums, units } of this.#rows.values()) {
      const key = [deploymentId, day, endpoint, tokenId] as const;
      this.#db.run(
        `INSERT INTO usage (deployment_id, day, endpoint, token_id, tasks, run_ms, gpu_ms, bytes_in,
           bytes_out)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
         ON CONFLICT DO UPDATE SET tasks = tasks + ?5, run_ms = run_ms + ?6,
           gpu_ms = gpu_ms + ?7, bytes_in = bytes_in + ?8, bytes_out = bytes_out + ?9`,
        ...key,
        ...[sums.tasks, sums.runMs, sums.gpuMs, sums.bytesIn, sums.bytesOut],
      );
      for (const [unit, amount] of units) {
        this.#db.run(
          `INSERT INTO usage_units (deployment_id, day, endpoint, token_id, unit, amount)
           VALUES (?1, ?2, ?3, ?4, ?5, ?6)
           ON CONFLICT DO UPDATE SET amount = amount + ?6`,
          ...key,
          ...[unit, amount],
        );
      }
    }
    this.#rows.clear();
  }

  /** Drops what a rolled-back transaction had. */
  forget(): void {
    this.#rows.clear();
  }
}
