/**
 * The sessions of workers that joined this node: one for each, named by a secret, of which only
 * the digest is kept. A session belongs to the token that opened it, and ends with its worker.
 */
import { createHash, randomBytes } from "node:crypto";
import type { TokenPrincipal } from "../../auth/principal.ts";
import { SharedBound } from "../../collections/shared-bound.ts";
import { problem } from "../../errors.ts";
import type { HeldArtifact } from "../../hosting/artifact-cache.ts";
import type { RemoteWorker } from "../../pool/remote/remote-worker.ts";
import type { Reports } from "./reports.ts";

/** Workers on other machines that one node has. */
const MAX_JOINED_WORKERS = 1_000;
/** The same, of one deployment. */
const MAX_JOINED_WORKERS_PER_DEPLOYMENT = 200;

/** Random bytes of a session's secret: nobody guesses them. */
const SECRET_BYTES = 24;

/** What a worker may read of the artifact of its revision. */
export type ServedArtifact = Pick<HeldArtifact, "index" | "openFile">;

export interface WorkerSession {
  readonly secret: string;
  /** After this silence its worker is lost. */
  readonly silenceMs: number;
  readonly tokenId: string;
  readonly organizationId: string;
  readonly deploymentId: string;
  readonly worker: RemoteWorker;
  readonly reports: Reports;
  /** Undefined for a worker with code of its own. */
  readonly artifact: ServedArtifact | undefined;
}

/** Whose worker takes a place. */
interface Place {
  readonly organizationId: string;
  readonly deploymentId: string;
}

/** A new secret: the lease that it is for, and what nobody can guess. */
export function newSessionSecret(leaseId: string): string {
  return `${leaseId}.${randomBytes(SECRET_BYTES).toString("base64url")}`;
}

function digestOf(secret: string): string {
  return createHash("sha256").update(secret).digest("base64url");
}

/**
 * What is stored of a session: a digest of its secret, bound to its token and its deployment.
 * A node that adopts the lease has to name all three, and the statement that does it compares them.
 */
export function storedSession(secret: string, { tokenId, deploymentId }: SessionParties): string {
  return digestOf(JSON.stringify([secret, tokenId, deploymentId]));
}

/** The two that a session is of: the token that opened it, and its deployment. */
export type SessionParties = Pick<WorkerSession, "tokenId" | "deploymentId">;

/** The lease that a secret is for. */
export function leaseOf(secret: string): string {
  return secret.slice(0, Math.max(0, secret.lastIndexOf(".")));
}

export class WorkerSessions {
  /** By the digests of their secrets. */
  readonly #sessions = new Map<string, WorkerSession>();
  readonly #places = new SharedBound(MAX_JOINED_WORKERS);

  /**
   * Takes a place for another worker of this deployment; the returned function gives it back.
   * Throws LIMIT_REACHED without one.
   */
  takePlace({ organizationId, deploymentId }: Place): () => void {
    const all = [...this.#sessions.values()];
    const own = all.filter((session) => session.deploymentId === deploymentId).length;
    if (own >= MAX_JOINED_WORKERS_PER_DEPLOYMENT || !this.#places.take(organizationId)) {
      throw problem(
        "LIMIT_REACHED",
        `this node has ${own} joined workers of the deployment, of ${MAX_JOINED_WORKERS_PER_DEPLOYMENT}, and ${this.#places.takenBy(organizationId)} of the organization (${this.#places.rule}): try again, another node may answer`,
      );
    }
    let taken = true;
    return () => {
      if (taken) {
        taken = false;
        this.#places.give(organizationId);
      }
    };
  }

  /** Adds the session of a worker that has taken a place, and gives that back when it ends. */
  add(session: WorkerSession, leave: () => void): void {
    const digest = digestOf(session.secret);
    this.#sessions.set(digest, session);
    void session.worker.exited.then(() => {
      this.#sessions.delete(digest);
      leave();
      session.reports[Symbol.dispose]();
    });
  }

  /** All of an organization; of all, where none is named. */
  of(organizationId?: string): readonly WorkerSession[] {
    return [...this.#sessions.values()].filter(
      (session) => organizationId === undefined || session.organizationId === organizationId,
    );
  }

  /** The session of this secret, if the same token opened it. */
  find(secret: string, { tokenId }: TokenPrincipal): WorkerSession | undefined {
    const found = this.#sessions.get(digestOf(secret));
    return found?.tokenId === tokenId && !found.worker.ended ? found : undefined;
  }

  /** Throws WORKER_SESSION_EXPIRED for one that is not here. */
  get(secret: string, principal: TokenPrincipal): WorkerSession {
    const found = this.find(secret, principal);
    if (found === undefined) {
      throw sessionExpired();
    }
    return found;
  }
}

/** The error of a session that is over, and why it is, where that is known. */
export function sessionExpired(reason?: string) {
  const why = reason === undefined ? "" : ` (${reason})`;
  return problem(
    "WORKER_SESSION_EXPIRED",
    `the session has ended${why}, and others have its calls: end them, and register anew without resume_session`,
  );
}
