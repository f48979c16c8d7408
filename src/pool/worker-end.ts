/** How the process of a worker ended. */

export interface WorkerEnd {
  /**
   * `memory`: it held more than its limit, and `gpu_memory` more than its share of a GPU; `gpu`: it
   * said that its GPU cannot be used any more;
   * `killed`: the node ended it, and `unresponsive` if that was for a call that it did not hear
   * the abort of; else `crashed`.
   */
  readonly cause: "crashed" | "gpu" | "gpu_memory" | "killed" | "memory" | "unresponsive";
  /** For people: what follows "the worker ended: ". */
  readonly message: string;
}
