/** The directory of deployments: finds the deployment that a request is for. A port. */
import type { Principal } from "../auth/principal.ts";
import { type Problem, problem } from "../errors.ts";
import type { CorsManifest } from "../protocol/manifest.ts";
import type { Tasks } from "../queue/tasks.ts";
import type { DeploymentWorkers } from "../storage/hosting/machines.ts";
import type { NodeWorkers } from "../storage/hosting/nodes.ts";
import { within } from "../time/race.ts";
import type { Deployment } from "./deployment.ts";
import type { Placed } from "./placement.ts";
import type { QueuedReason, QueuedTask } from "./queued-reason.ts";

/** What a request says about its deployment. */
export interface CallTarget {
  /** The request's field `deployment`, as `organization/name`; may be empty. */
  readonly named: string;
  /** The header `Tessera-Deployment`, of the same form; may be empty. */
  readonly header: string;
  /** The host of the request, with its port. */
  readonly host: string;
}

/** A deployment that exists, running or not. */
export interface Located {
  /** The facts that decide who may call it. */
  readonly facts: {
    readonly deploymentId: string;
    readonly organizationId: string;
    readonly organization: string;
    readonly name: string;
    readonly authorization: boolean;
  };
  /**
   * Opens it where it is at rest; undefined: nothing has to be waited for. Finding it opens nothing,
   * so that a caller comes here who may call it, and no other one makes the node work.
   */
  wake?(): Promise<void> | undefined;
  /**
   * The running deployment on this node, once `wake` has resolved. Throws DEPLOYMENT_STOPPED,
   * DEPLOYMENT_FAILED, or NO_WORKER while it starts.
   */
  deployment(): Deployment;
  /** Whether it takes calls on this node. */
  isReady(): boolean;
  /** Its tasks as they are stored, while nothing serves here that could be asked; undefined else. */
  stored?(): StoredDeployment | undefined;
  /**
   * Why a task of it is queued, by all nodes together: others are asked for, once, where this one
   * has no worker for it. `position`: the tasks before it, if they have been counted.
   */
  whyQueued(task: QueuedTask, position?: number): QueuedReason | Promise<QueuedReason>;
  /** Which workers may join it, as this node knows it now; undefined where it does not run. */
  placement?(): Placed["settings"] | undefined;
}

/** A deployment that does not serve here, as far as its tasks can be read. */
export interface StoredDeployment {
  readonly name: string;
  readonly tasks: Pick<Tasks, "get" | "place">;
}

/** Finds deployments by request. */
export interface Directory {
  /**
   * The deployment that a request is for; a promise only where it is not cached.
   * Errors: those of `deploymentUnknown`; to callers who may see the organization's
   * deployments, DEPLOYMENT_NOT_FOUND lists them; REQUEST_INVALID for a target that
   * contradicts itself.
   */
  find(target: CallTarget, principal: Principal): Located | Promise<Located>;

  /** True when host or header name a deployment; otherwise, a question about readiness is about the node. */
  names(target: Pick<CallTarget, "host" | "header">): boolean;

  /**
   * What its author says of pages of other sites, of the deployment whose own host this is;
   * undefined where they say nothing, or it does not run here. Every caller is told: browsers
   * ask before they send a token.
   */
  corsOf?(host: string): CorsManifest | undefined | Promise<CorsManifest | undefined>;

  /**
   * Why a task is queued, as far as this node knows by itself, without a question to anybody;
   * undefined where it does not know the deployment. Of an endpoint as a whole: a task that was due
   * long ago, and never begun.
   */
  whyQueued?(deploymentId: string, task: QueuedTask): QueuedReason | undefined;

  /** The workers of a deployment on this node. Undefined: nobody asks. */
  workersHere?(deploymentId: string): NodeWorkers & { readonly nodeId: string };

  /** The id of this node, and the workers of an organization on it. Undefined: nobody asks. */
  readonly nodeId?: string;
  allWorkersHere?(organizationId: string): readonly DeploymentWorkers[];
}

/**
 * The directory of `tessera serve`: one deployment on every host, whose callers are held while it
 * loads. `authorization`: callers need the node's token.
 */
export function singleDeployment(
  deployment: Deployment,
  {
    authorization,
    load = loaded,
  }: { readonly authorization: boolean; readonly load?: Pick<FirstLoad, "held"> },
): Directory {
  const located: Located = {
    facts: { deploymentId: "", organizationId: "", organization: "", name: "", authorization },
    deployment: () => deployment,
    isReady: () => true,
    whyQueued: (task, position) => deployment.whyQueued(task, { position }),
  };
  const named = (name: string): Located => {
    if (name === "" || name === deployment.name) {
      return located;
    }
    throw problem(
      "DEPLOYMENT_NOT_FOUND",
      `deployment ${JSON.stringify(name.slice(0, 127))} does not exist; this server has ${deployment.name}`,
    );
  };
  return {
    find({ named: field, header }, principal) {
      const name = agreed({ named: field, header });
      if (authorization && principal.kind === "anonymous") {
        // Refused by who asks, and not held before.
        return located;
      }
      return load.held()?.then(() => named(name)) ?? named(name);
    },
    names: () => false,
    corsOf() {
      const cors = () => deployment.manifest.cors;
      return load.held()?.then(cors, () => undefined) ?? cors();
    },
  };
}

const loaded: Pick<FirstLoad, "held"> = { held: () => undefined };

/** The name given by field or header; empty without one. Throws REQUEST_INVALID when they differ. */
export function agreed({ named, header }: Pick<CallTarget, "named" | "header">): string {
  if (named !== "" && header !== "" && named !== header) {
    throw contradiction(
      `the request names deployment ${JSON.stringify(named)}, its Tessera-Deployment header ${JSON.stringify(header)}: send one of them, or the same`,
      "contradicts the Tessera-Deployment header",
    );
  }
  return named || header;
}

export function contradiction(message: string, description: string): Problem {
  return problem("REQUEST_INVALID", message, {
    violations: [{ field: "deployment", description }],
  });
}

// The first load of a service that is served alone. It may take minutes, and callers may be there
// before it: each is held until the service has loaded, or told after a while to come back.

/**
 * How long a caller is held while the service loads: less than the timeouts of usual clients and
 * proxies, so that they hear the reason.
 */
const HELD_CALL_MS = 30_000;

/** When a caller that was held in vain may come back. */
const RETRY_AFTER_MS = 1_000;

export class FirstLoad {
  readonly #holdMs: number;
  readonly #loaded = Promise.withResolvers<void>();
  #isLoading = true;

  constructor(holdMs = HELD_CALL_MS) {
    this.#holdMs = holdMs;
    // Nobody may be there to hear of it.
    this.#loaded.promise.catch(() => {});
  }

  /** The service takes calls. */
  done(): void {
    this.#isLoading = false;
    this.#loaded.resolve();
  }

  /** The service cannot be loaded, or is not wanted any more: who waits is refused with this. */
  failed(refusal: Error): void {
    this.#loaded.reject(refusal);
  }

  /** Resolves when the service takes calls; rejects with NO_WORKER after a while. Undefined: it does. */
  held(): Promise<void> | undefined {
    return this.#isLoading ? this.#hold() : undefined;
  }

  #hold(): Promise<void> {
    return within(this.#loaded.promise, this.#holdMs, () => {
      const message = "the service is still loading: try again";
      throw problem("NO_WORKER", message, { retryAfterMs: RETRY_AFTER_MS });
    });
  }
}
