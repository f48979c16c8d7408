/** The problems of calls to a deployment that does not run on this node. */
import { WAITING_FOR_ROOM } from "../deployments/state.ts";
import { type Problem, problem } from "../errors.ts";
import type { DeploymentRecord } from "../storage/accounts/organizations.ts";

type Named = Pick<DeploymentRecord, "organization" | "name">;

export function starting({ organization, name }: Named): Problem {
  return problem("NO_WORKER", `deployment ${organization}/${name} is starting: try again`, {
    retryAfterMs: 1_000,
  });
}

/** The problem of a deployment that has not started yet, because the node has no room for it. */
export function waiting({ organization, name }: Named): Problem {
  return problem(
    "NO_WORKER",
    `deployment ${organization}/${name} is ${WAITING_FOR_ROOM}: try again later`,
    { retryAfterMs: 5_000 },
  );
}

export function stopped({ organization, name }: Named): Problem {
  return problem(
    "DEPLOYMENT_STOPPED",
    `deployment ${organization}/${name} is stopped: tessera deployment start ${name}`,
    { retryAfterMs: 30_000 },
  );
}

export function failed({ organization, name }: Named): Problem {
  return problem(
    "DEPLOYMENT_FAILED",
    `deployment ${organization}/${name} could not start: its status says why (tessera deployment get ${name})`,
    { retryAfterMs: 5_000 },
  );
}

/** The problem of a deployment without any revision. */
export function empty({ organization, name }: Named): Problem {
  return problem(
    "DEPLOYMENT_STOPPED",
    `nothing was deployed to ${organization}/${name} yet: tessera deploy service.ts --name ${name}`,
    { retryAfterMs: 30_000 },
  );
}
