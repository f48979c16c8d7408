/** FederationService: metrics for an organization's Prometheus. */
import type { ContextValues, ServiceImpl } from "@connectrpc/connect";
import { Access } from "../../gen/tessera/v1/access_pb.js";
import type { FederationService } from "../../gen/tessera/v1/federation_pb.js";
import { authorize } from "../auth/permissions.ts";
import { problem } from "../errors.ts";
import { TEXT_FORMAT } from "../metrics/federate.ts";
import type { Federation, Monitored } from "../metrics/federation.ts";
import { MatchError } from "../metrics/selector/error.ts";
import { UpstreamError } from "../metrics/upstream.ts";
import { callerOf, memberIn } from "../server/rpc/engine/caller.ts";

/** The organization of a monitoring token. Errors: ACCESS_DENIED, ORGANIZATION_NOT_FOUND. */
export function monitoredBy(values: ContextValues): Monitored {
  const caller = callerOf({ values });
  authorize(caller.principal, Access.MONITORING, { standalone: false });
  const { organizationId, organization } = memberIn(caller, "");
  return { organizationId, organization };
}

/** FederationService; `monitored` returns the organization whose metrics the caller may read. */
export function federationService(
  federation: Federation,
  monitored: (values: ContextValues) => Monitored = monitoredBy,
): Partial<ServiceImpl<typeof FederationService>> {
  return {
    async *federate({ match }, { values, signal }) {
      try {
        const chunks = await federation.answer({ ...monitored(values), match, signal });
        for await (const chunk of chunks) {
          const data = typeof chunk === "string" ? Buffer.from(chunk) : chunk;
          yield { contentType: TEXT_FORMAT, data };
        }
      } catch (err) {
        if (err instanceof MatchError) {
          throw problem("REQUEST_INVALID", err.message, {
            violations: [{ field: "match", description: err.message }],
          });
        }
        if (err instanceof UpstreamError) {
          throw problem("STORAGE_UNAVAILABLE", err.message, { cause: err });
        }
        throw err;
      }
    },
  };
}
