/**
 * The metrics storage port: nodes share their metric samples through it.
 *
 * Each node has one row per organization, which it replaces every few seconds.
 * The names and labels of the samples are long and rarely change. They form the
 * layout, which has an id and is stored and read only when it is new; the
 * values travel alone. This port knows the format of neither.
 *
 * It keeps the promises of the storage port except one: a crash of the database
 * may lose rows. Nodes write them again a few seconds later.
 */
export interface MetricsStorage {
  /**
   * Replaces the node's rows for these organizations. Without a `layout`, the
   * stored layout must be the named one. Returns the organizations where it was
   * another: their rows are unchanged and have to be sent again with the
   * layout.
   */
  putSamples(parameters: {
    readonly nodeId: string;
    readonly nowMs: number;
    readonly rows: readonly SampleRow[];
  }): Promise<string[]>;

  /**
   * Lists the samples of other nodes for an organization, from nodes that wrote
   * within `withinMs`. Where nodes share the database, its clock decides.
   */
  listSamples(parameters: {
    readonly organizationId: string;
    readonly exceptNodeId: string;
    readonly nowMs: number;
    readonly withinMs: number;
  }): Promise<ForeignSamples[]>;

  /** Returns a layout; undefined when the node has replaced it. */
  getLayout(parameters: {
    readonly organizationId: string;
    readonly nodeId: string;
    readonly layoutId: string;
  }): Promise<string | undefined>;

  /** Deletes all rows of the node, or those of one organization. */
  dropSamples(parameters: {
    readonly nodeId: string;
    readonly organizationId?: string;
  }): Promise<void>;

  /** Deletes the rows of nodes that have not written for `afterMs`. */
  pruneSamples(parameters: { readonly nowMs: number; readonly afterMs: number }): Promise<void>;
}

export interface SampleRow {
  readonly organizationId: string;
  readonly layoutId: string;
  readonly layout?: string;
  /** When the samples were taken, by the node's clock. */
  readonly takenAtMs: number;
  readonly samples: string;
}

/** The samples of another node. */
export interface ForeignSamples {
  readonly nodeId: string;
  readonly layoutId: string;
  readonly takenAtMs: number;
  readonly samples: string;
}
