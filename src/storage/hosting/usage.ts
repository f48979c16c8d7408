/**
 * Who used what: sums by day, deployment, endpoint and token.
 *
 * A task is counted where it is stored, and what an attempt of it used where its end is stored, in
 * the same transaction each: neither is lost or counted twice, whichever node dies. Nodes sum up the calls
 * of apis, and flush the sums with `addUsage`.
 */

/** What functions reported, by unit. */
export interface UnitAmounts {
  readonly [unit: string]: number;
}

/** What an attempt used, besides what the storage knows itself. */
export interface AttemptUse {
  /** Time of GPUs. */
  readonly gpuMs: number;
  /** Absent: its function reported nothing. */
  readonly units?: UnitAmounts | undefined;
  /** The most memory that its worker held meanwhile, which its task tells; absent: not known. */
  readonly peakMemoryBytes?: number | undefined;
}

interface UsageAmounts {
  /** Calls of apis, and requests to mounted servers. */
  readonly calls: number;
  /** Tasks that were submitted. */
  readonly tasks: number;
  /** How long calls and attempts ran that have ended. */
  readonly runMs: number;
  /** The part of it that GPUs were had. */
  readonly gpuMs: number;
  /** Of arguments. */
  readonly bytesIn: number;
  /** Of results. */
  readonly bytesOut: number;
  readonly units: UnitAmounts;
}

/** What the calls of an api used, for one caller. */
export interface UsedByCalls extends Omit<UsageAmounts, "tasks"> {
  readonly deploymentId: string;
  readonly day: number;
  readonly endpoint: string;
  /** Empty: they came without a token. */
  readonly tokenId: string;
}

/** What sums of usage are told apart by. */
export type UsageKey = "day" | "deployment" | "endpoint" | "token";

export interface UsageQuery {
  readonly organizationId: string;
  readonly fromDay: number;
  /** Exclusive. */
  readonly toDay: number;
  readonly by: readonly UsageKey[];
  /** Their names. Empty: all. */
  readonly deployments: readonly string[];
  /** Ids. Empty: all, and the use without a token. */
  readonly tokenIds: readonly string[];
  readonly limit: number;
}

/** The token of callers; empty for those without one, and the name for one that is not known. */
export interface UsedToken {
  readonly id: string;
  readonly name: string;
  /** The person whose token it is; empty: of a personal one that was deleted. */
  readonly owner: "organization" | (string & {});
}

/** A sum; what it is not told apart by is undefined. */
export interface UsageSum extends UsageAmounts {
  readonly day: number | undefined;
  /** Its name, also of one that was deleted. */
  readonly deployment: string | undefined;
  readonly endpoint: string | undefined;
  readonly token: UsedToken | undefined;
}

export interface UsageStorage {
  /**
   * Adds what calls used. A flush that a recorder repeats, or one with a lower sequence, adds nothing.
   * @param parameters.recorder which start of which node
   */
  addUsage(parameters: {
    readonly recorder: string;
    readonly sequence: number;
    readonly day: number;
    readonly rows: readonly UsedByCalls[];
  }): Promise<void>;

  /** Sums up what an organization used, at most `limit` sums, in the order of their keys. */
  readUsage(parameters: UsageQuery): Promise<UsageSum[]>;

  /** Deletes at most `limit` rows of each kind that are older than `KEPT_DAYS` (days.ts); returns how many. */
  pruneUsage(parameters: { readonly nowMs: number; readonly limit: number }): Promise<number>;
}
