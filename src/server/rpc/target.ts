/**
 * The target of a call: finds its deployment and checks that the caller may
 * call it. An interceptor does so, or a plugin that has to know before it
 * reads the body; methods take the deployment from the context of the call.
 */
import { type ContextValues, createContextKey, type HandlerContext } from "@connectrpc/connect";
import { Access } from "../../../gen/tessera/v1/access_pb.js";
import { authorize } from "../../auth/permissions.ts";
import type { Deployment } from "../../deployments/deployment.ts";
import type { CallTarget, Directory, Located } from "../../deployments/directory.ts";
import { callerOf, hostOf } from "./engine/caller.ts";

/** Names the deployment as `organization/name` on hosts that do not. */
export const DEPLOYMENT_HEADER = "tessera-deployment";

const locatedKey = createContextKey<Located | undefined>(undefined, {
  description: "the deployment that the call is for",
});

/**
 * Finds the deployment of a call and puts it into the call's context values,
 * which hold its caller already. One at rest is opened for a caller who may call it. Returns a
 * promise only if the deployment is not known, or not open. Errors: those of `Directory.find` and
 * `authorize`.
 */
export type Locate = (
  values: ContextValues,
  target: Pick<CallTarget, "named" | "header">,
) => Promise<void> | undefined;

/** Creates the function that finds deployments; `standalone` as in `Situation`. */
export function createLocate(
  directory: Directory,
  { standalone }: { readonly standalone: boolean },
): Locate {
  return (values, { named, header }) => {
    const { principal } = callerOf({ values });
    const admit = (located: Located): Promise<void> | undefined => {
      authorize(principal, Access.ENDPOINT, { standalone, deployment: located.facts });
      values.set(locatedKey, located);
      return located.wake?.();
    };
    const found = directory.find({ named, header, host: hostOf(values) }, principal);
    return found instanceof Promise ? found.then(admit) : admit(found);
  };
}

/** True if the deployment of a call has been found already. */
export function isLocated(values: ContextValues): boolean {
  return values.get(locatedKey) !== undefined;
}

/** The running deployment that a call is for. Throws the errors of `Located.deployment`. */
export function deploymentOf(ctx: Pick<HandlerContext, "values">): Deployment {
  return locatedOf(ctx).deployment();
}

/** The deployment that a call is for, whether it runs or not. */
export function locatedOf({ values }: Pick<HandlerContext, "values">): Located {
  const located = values.get(locatedKey);
  if (located === undefined) {
    throw new Error("the method's access does not ask for a deployment");
  }
  return located;
}
