import type { Principal } from "../auth/principal.ts";
import { type Problem, problem } from "../errors.ts";
import type { Deployment } from "./deployment.ts";

/** What a request says of the deployment that it is for. */
export interface CallTarget {
  /** The request's field `deployment`, as `organization/name`; may be empty. */
  readonly named: string;
  /** The header `Tessera-Deployment`, of the same form; may be empty. */
  readonly header: string;
  /** The host that was asked, with its port. */
  readonly host: string;
}

/** A deployment that exists. Whether it runs is another question. */
export interface Located {
  /** What it depends on who may call it. */
  readonly facts: {
    readonly deploymentId: string;
    readonly organizationId: string;
    readonly name: string;
    readonly authorization: boolean;
  };
  /**
   * What runs it on this node. Throws DEPLOYMENT_STOPPED, DEPLOYMENT_FAILED,
   * or NO_WORKER while it starts.
   */
  deployment(): Deployment;
}

/** Which deployment a request is for. */
export interface Directory {
  /**
   * The deployment that a request is for; a promise only where that is not
   * known at once. Errors: DEPLOYMENT_NOT_FOUND, which names others to who may
   * know of them; REQUEST_INVALID for a target that contradicts itself.
   */
  find(target: CallTarget, principal: Principal): Located | Promise<Located>;

  /**
   * Whether a deployment takes calls; undefined when neither host nor header
   * name one, and the question is about the node. Errors: those of `find`.
   */
  readiness(target: CallTarget): Promise<boolean | undefined>;
}

/**
 * A node that serves one deployment, whatever host it is asked on, to whoever
 * may call the node; `authorization`: who has its token.
 */
export function singleDeployment(
  deployment: Deployment,
  { authorization }: { readonly authorization: boolean },
): Directory {
  const located: Located = {
    facts: { deploymentId: "", organizationId: "", name: "", authorization },
    deployment: () => deployment,
  };
  return {
    find({ named, header }) {
      const name = agreed({ named, header });
      if (name === "" || name === deployment.name) {
        return located;
      }
      throw problem(
        "DEPLOYMENT_NOT_FOUND",
        `deployment ${JSON.stringify(name.slice(0, 127))} does not exist; this server has ${deployment.name}`,
      );
    },
    readiness: () => Promise.resolve(undefined),
  };
}

/** The name that field and header give, whichever is there. Throws REQUEST_INVALID when they differ. */
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
