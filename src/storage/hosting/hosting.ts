/**
 * The hosting port: which revision of what every deployment should run, the
 * files for it, and what nodes tell each other about it.
 *
 * The promises are those of the accounts port. Deployments themselves are made,
 * changed and deleted there; everything that changes one here comes with its
 * audit event and its change event too.
 *
 * A deployment that is deleted is gone at once, with its secrets. What else it
 * had is found by a mark that it leaves behind and deleted in small pieces by
 * `pruneHosting`, its tasks by `pruneDeleted` of the storage port. The mark
 * stays for an hour, since a node may not have heard of it yet and go on to
 * write: what it writes goes at the end of that.
 */
import type { ArtifactFiles } from "./files.ts";
import type { Logs } from "./logs.ts";
import type { NodeStorage } from "./nodes.ts";
import type { Revisions } from "./revisions.ts";
import type { SecretStorage } from "./secrets.ts";

export interface HostingStorage extends Revisions, SecretStorage, ArtifactFiles, NodeStorage, Logs {
  /**
   * Deletes what deleted deployments have left, and nodes that died long ago:
   * at most `limit` rows of each kind. Answers how much it did; 0 when nothing
   * is left to do.
   */
  pruneHosting(parameters: { readonly nowMs: number; readonly limit: number }): Promise<number>;
}
