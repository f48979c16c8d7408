/**
 * The notifier port: how nodes that share a database tell each other that it
 * could be worth a look. A hint may come late, twice, or never; whoever relies
 * on one asks the storage all the same now and then. Nothing true is in a
 * hint itself: what it is about is read from the storage.
 */
export type Hint =
  /** Tasks of this endpoint may be waiting. */
  | { readonly kind: "queued"; readonly deploymentId: string; readonly endpoint: string }
  /** This task has a new state or new events. */
  | { readonly kind: "changed"; readonly taskId: string }
  /** The abort of this task was asked for. */
  | { readonly kind: "abort"; readonly taskId: string }
  /** Tokens, people, organizations or their deployments have changed. */
  | { readonly kind: "accounts" }
  /** Anything may have happened: there was too much to tell, or hints were missed. */
  | { readonly kind: "look" };

export interface Notifier extends AsyncDisposable {
  /** Begins to listen. Does not wait for a connection and does not fail. */
  start(): void;

  /** Tells the other nodes, soon and in batches. Never waits, never throws. */
  publish(hint: Hint): void;

  /** Calls `listener` with the hints of other nodes, not with one's own. Answers what ends that. */
  subscribe(listener: (hint: Hint) => void): () => void;
}
