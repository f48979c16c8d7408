/**
 * Which deployment a call is for, and whether its caller may call it. The
 * interceptors find out, or a face that has to know before it reads the body;
 * methods take what was found from the context of the call.
 */
import { type ContextValues, createContextKey, type HandlerContext } from "@connectrpc/connect";
import { Access } from "../../../gen/tessera/v1/access_pb.js";
import { authorize } from "../../auth/permissions.ts";
import type { Deployment } from "../../deployments/deployment.ts";
import type { CallTarget, Directory, Located } from "../../deployments/directory.ts";
import { callerOf, hostOf } from "./engine/caller.ts";

/** Names the deployment on hosts that do not: `organization/name`. */
export const DEPLOYMENT_HEADER = "tessera-deployment";

const locatedKey = createContextKey<Located | undefined>(undefined, {
  description: "the deployment that the call is for",
});

/**
 * Finds the deployment of a call and leaves it in the call's context values,
 * which know its caller; a promise only where that is not known at once.
 * Errors: those of `Directory.find` and `authorize`.
 */
export type Locate = (
  values: ContextValues,
  target: Pick<CallTarget, "named" | "header">,
) => Promise<void> | undefined;

/** @param standalone see `Situation`. */
export function createLocate(
  directory: Directory,
  { standalone }: { readonly standalone: boolean },
): Locate {
  return (values, { named, header }) => {
    const { principal } = callerOf({ values });
    const admit = (located: Located): void => {
      authorize(principal, Access.ENDPOINT, { standalone, deployment: located.facts });
      values.set(locatedKey, located);
    };
    const found = directory.find({ named, header, host: hostOf(values) }, principal);
    if (found instanceof Promise) {
      return found.then(admit);
    }
    admit(found);
    return undefined;
  };
}

/** Whether the deployment of a call has been found already. */
export function isLocated(values: ContextValues): boolean {
  return values.get(locatedKey) !== undefined;
}

/** The deployment that a call is for. Throws what `Located.hosted` throws. */
export function deploymentOf(ctx: Pick<HandlerContext, "values">): Deployment {
  return locatedOf(ctx).deployment();
}

/** The same, whether it runs or not. */
export function locatedOf({ values }: Pick<HandlerContext, "values">): Located {
  const located = values.get(locatedKey);
  if (located === undefined) {
    throw new Error("the method's access does not ask for a deployment");
  }
  return located;
}
