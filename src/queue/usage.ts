/** What calls and attempts use: measured from their beginning to their end. */
import type { Log } from "../log/log.ts";
import type { Slot } from "../pool/pool.ts";
import { faultOfUnit, MAX_UNIT_AMOUNT, MAX_UNITS_PER_CALL, type Units } from "../protocol/units.ts";
import type { AttemptUse } from "../storage/hosting/usage.ts";

/** Units of a deployment that a node tells apart: each is a row for each day, endpoint and token. */
const MAX_UNITS_PER_DEPLOYMENT = 32;

/** The names of the units that functions of a deployment have reported. */
export class UnitNames {
  readonly #names = new Set<string>();
  readonly #log: Log;
  #isTold = false;

  constructor(log: Log) {
    this.#log = log;
  }

  /** False for a name that is one too many. */
  admit(name: string): boolean {
    if (this.#names.has(name)) {
      return true;
    }
    if (this.#names.size < MAX_UNITS_PER_DEPLOYMENT) {
      this.#names.add(name);
      return true;
    }
    if (!this.#isTold) {
      this.#isTold = true;
      const most = `functions report more than ${MAX_UNITS_PER_DEPLOYMENT} units`;
      this.#log.warn({ unit: name }, `${most}: further ones are not counted`);
    }
    return false;
  }
}

/** Measures one call, or one attempt. */
export class UsageMeter {
  readonly #names: UnitNames;
  readonly #gpuMs: (() => number) | undefined;
  /** Made on first use: few functions report any. */
  #units: Map<string, number> | undefined;

  constructor(slot: Pick<Slot, "gpuTime">, names: UnitNames) {
    this.#names = names;
    this.#gpuMs = slot.gpuTime?.begin();
  }

  /** Adds what the function has reported; what does not belong there is left out. */
  report(units: Units): void {
    const sums = this.#units ?? new Map<string, number>();
    this.#units = sums;
    for (const [name, amount] of Object.entries(units)) {
      const before = sums.get(name);
      const hasRoom = before !== undefined || sums.size < MAX_UNITS_PER_CALL;
      if (hasRoom && faultOfUnit(name, amount) === undefined && this.#names.admit(name)) {
        sums.set(name, Math.min(MAX_UNIT_AMOUNT, (before ?? 0) + amount));
      }
    }
  }

  /** What was used; call it once, at the end. */
  end(): AttemptUse {
    const gpuMs = this.#gpuMs?.() ?? 0;
    return this.#units?.size ? { gpuMs, units: Object.fromEntries(this.#units) } : { gpuMs };
  }
}
