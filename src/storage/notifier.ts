/**
 * The notifier port: wake-up hints between nodes that share a database. A hint
 * may arrive late, twice, or never, so every receiver also polls the storage. A
 * hint carries no state: the receiver reads that from the storage.
 */
export type Hint =
  /** Tasks of this endpoint may be waiting, of these keys. Without `keys`: of any. */
  | {
      readonly kind: "queued";
      readonly deploymentId: string;
      readonly endpoint: string;
      readonly keys?: readonly string[] | undefined;
    }
  /** This task changed its state or has new events. Without `live` it may have ended. */
  | { readonly kind: "changed"; readonly taskId: string; readonly live?: true }
  /** The abort of this task was requested. */
  | { readonly kind: "abort"; readonly taskId: string }
  /** Tokens, people, organizations or their deployments have changed. */
  | { readonly kind: "accounts" }
  /** Anything may have changed: there were too many hints, or some were lost. */
  | { readonly kind: "look" };

export interface Notifier extends AsyncDisposable {
  /** False while hints of other nodes may not arrive: receivers poll more often then. */
  readonly isUp: boolean;

  /** Starts listening. Does not wait for a connection and does not fail. */
  start(): void;

  /** Sends a hint to the other nodes, soon and in batches. Never waits, never throws. */
  publish(hint: Hint): void;

  /**
   * Calls `listener` with hints of other nodes, not with this node's own.
   * Returns the unsubscribe function.
   */
  subscribe(listener: (hint: Hint) => void): () => void;
}
