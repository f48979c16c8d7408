/** What a deployment on a node works with. */
import type { HostedDeployment } from "../deployments/deployment.ts";
import type { Log } from "../log/log.ts";
import type { HostedRecord } from "../storage/hosting/revisions.ts";
import type { ServedRevision, ServedRevisions } from "./last-served.ts";
import type { PreparationOptions } from "./preparation.ts";

export interface ResidentOptions extends PreparationOptions {
  /** Makes what runs a deployment, with its number of workers within these bounds. */
  readonly open: (record: HostedRecord, scale: Share) => HostedDeployment;
  /** A revision that other nodes serve, when the target revision does not start here. */
  readonly servedElsewhere: (record: HostedRecord) => Promise<ServedRevision | undefined>;
  readonly served: ServedRevisions;
  readonly shareOf: (record: HostedRecord) => Share;
  readonly log: Log;
  /** What `report` answers may have changed. */
  onChange(): void;
}

/** Workers on this node. */
export interface Share {
  readonly min: number;
  readonly max: number;
  readonly nodes: number;
}
