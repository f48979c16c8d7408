/**
 * The port by which nodes show each other what they have counted.
 *
 * Each node has one row per organization, which it replaces every few seconds.
 * What a row says about (names and labels) changes seldom and is long: it is
 * the layout, which has an id and is stored and read only when it is new. The
 * values come by themselves. This port knows neither's format.
 *
 * The promises are those of the storage port, but for one: where the database
 * breaks down, rows may be lost. A few seconds later they are there again.
 */
export interface MetricsStorage {
  /**
   * Replaces the node's rows for these organizations; without a `layout`, the
   * stored one has to be the one named. Answers the organizations for which it
   * was not: their rows are as they were, and have to be sent with it.
   */
  putSamples(parameters: {
    readonly nodeId: string;
    readonly nowMs: number;
    readonly rows: readonly SampleRow[];
  }): Promise<string[]>;

  /**
   * What other nodes than this one have counted for an organization, of those
   * that wrote within `withinMs`. Where nodes share the database, its clock
   * decides.
   */
  listSamples(parameters: {
    readonly organizationId: string;
    readonly exceptNodeId: string;
    readonly nowMs: number;
    readonly withinMs: number;
  }): Promise<ForeignSamples[]>;

  /** A layout; undefined when the node has another one by now. */
  getLayout(parameters: {
    readonly organizationId: string;
    readonly nodeId: string;
    readonly layoutId: string;
  }): Promise<string | undefined>;

  /** Deletes the node's rows: all, or those of one organization. */
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

/** What another node has counted. */
export interface ForeignSamples {
  readonly nodeId: string;
  readonly layoutId: string;
  readonly takenAtMs: number;
  readonly samples: string;
}
