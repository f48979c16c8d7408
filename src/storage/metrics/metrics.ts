/**
 * The metrics storage port: nodes share their metric samples through it, and keep
 * what they measured over time.
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

  /** Stores what a node has measured; rows with the same key are replaced. */
  putHistory(parameters: { readonly rows: readonly HistoryRow[] }): Promise<void>;

  /**
   * Reads at most `limit` rows of one deployment and resolution, by time and
   * recorder, from `fromMs` inclusive to `toMs` exclusive, and only those after the
   * row `after`.
   */
  readHistory(parameters: HistoryQuestion): Promise<HistoryValues[]>;

  /**
   * Deletes at most `limit` rows of a resolution that begin before `beforeMs`.
   * Returns how many it deleted.
   */
  pruneHistory(parameters: {
    readonly resolutionMs: number;
    readonly beforeMs: number;
    readonly limit: number;
  }): Promise<number>;
}

/** What is known of a deployment in one interval, as one node measured it. */
export interface HistoryRow extends HistoryValues {
  readonly organizationId: string;
  /** Empty for all deployments of the organization together. */
  readonly deploymentId: string;
  /** The length of the interval. */
  readonly resolutionMs: number;
}

/** The content of a row. This port does not know its format. */
export interface HistoryValues {
  /** When the interval began, by the node's clock: a multiple of the resolution. */
  readonly beganAtMs: number;
  /** Which start of which node measured it. */
  readonly recorder: string;
  /** Metrics of the platform. */
  readonly platform: string;
  /** Metrics that the service counts itself; empty where there are none, or when not asked for. */
  readonly custom: string;
}

export interface HistoryQuestion
  extends Pick<HistoryRow, "organizationId" | "deploymentId" | "resolutionMs"> {
  readonly fromMs: number;
  readonly toMs: number;
  readonly after?: Pick<HistoryValues, "beganAtMs" | "recorder">;
  readonly withCustom: boolean;
  readonly limit: number;
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
