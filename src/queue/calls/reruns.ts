/**
 * Whether a call of an api runs again whose worker ended before anything of its answer was sent.
 * One whose function had not begun runs again in any case. One that may have begun does so only
 * if its endpoint says that it may run twice (`idempotent`): within the time limit of the first
 * execution, after no more deaths than a task survives, and after the second of them alone in a
 * worker, so that calls which were beside poison twice are not beside it again.
 */
import type { ExecutionEnd } from "../../pool/calls/execution.ts";
import type { EndpointManifest } from "../../protocol/manifest.ts";
import { MAX_LOST_NODES, MAX_LOST_WORKERS } from "../../tasks/lost.ts";

/** Workers that a call is given to in turn, while they end before its function has begun. */
const MAX_TRIES = 3;

/** Deaths of its worker beside others after which a call runs alone in one. */
const MAX_DEATHS_BESIDE_OTHERS = 2;

export class Reruns {
  readonly #endpoint: EndpointManifest;
  #tries = 0;
  #deaths = 0;
  #deathsBesideOthers = 0;
  #machinesLost = 0;
  /** When the first execution began whose function may have begun too. */
  #beganMs: number | undefined;
  #mayHaveBegun = false;

  constructor(endpoint: EndpointManifest) {
    this.#endpoint = endpoint;
  }

  /** The number of the execution that begins now, and the time that is left for it. */
  begin(): { readonly attempt: number; readonly timeoutMs: number } {
    this.#tries += 1;
    this.#beganMs ??= performance.now();
    return { attempt: this.#tries, timeoutMs: this.leftMs };
  }

  /** The executions that have begun. */
  get tries(): number {
    return this.#tries;
  }

  /** What is left of the time limit. */
  get leftMs(): number {
    const { timeoutMs } = this.#endpoint;
    const goneMs = this.#beganMs === undefined ? 0 : performance.now() - this.#beganMs;
    return Math.max(0, Math.round(timeoutMs - goneMs));
  }

  /** True when it is to run with no other call beside it. */
  get alone(): boolean {
    return this.#deathsBesideOthers >= MAX_DEATHS_BESIDE_OTHERS;
  }

  /** True for an execution that ended like this if the call runs again. */
  after(end: ExecutionEnd): boolean {
    if (end.kind === "displaced" && end.unbegun) {
      this.#beganMs = this.#mayHaveBegun ? this.#beganMs : undefined;
      return this.#tries < MAX_TRIES || this.#mayRepeat;
    }
    this.#mayHaveBegun = true;
    switch (end.kind) {
      case "lost":
        this.#deaths += 1;
        this.#deathsBesideOthers += end.alone ? 0 : 1;
        return this.#mayRepeat && this.#deaths <= MAX_LOST_WORKERS;
      case "cut_off":
        this.#machinesLost += 1;
        return this.#mayRepeat && this.#machinesLost <= MAX_LOST_NODES;
      case "displaced":
        return this.#mayRepeat;
      default:
        return false;
    }
  }

  get #mayRepeat(): boolean {
    return this.#endpoint.idempotent === true && this.leftMs > 0;
  }
}
