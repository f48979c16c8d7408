/**
 * LauncherService: what programs that start machines ask, and say. A deployment is one launcher's
 * at a time, by a lease that each report prolongs; without it there are no tokens for machines.
 */
import { stripVTControlCharacters } from "node:util";
import type { ContextValues, ServiceImpl } from "@connectrpc/connect";
import type { LauncherService, LaunchReport } from "../../../gen/tessera/v1/launcher_pb.js";
import type { KeyRing } from "../../auth/keys.ts";
import { MAX_MACHINE_LIFETIME_MS, MachineTokens } from "../../auth/machine-token.ts";
import { deploymentUnknown, launches } from "../../auth/permissions.ts";
import { principalOf, type TokenPrincipal } from "../../auth/principal.ts";
import { problem } from "../../errors.ts";
import { memberOf } from "../../server/rpc/engine/caller.ts";
import type { Organizations } from "../../storage/accounts/organizations.ts";
import type { LauncherStorage } from "../../storage/hosting/launchers.ts";
import { timestampFromMs } from "../../time/messages.ts";
import { deploymentsOf } from "../deployments-of.ts";
import { milliseconds } from "../task/messages.ts";
import { type WantedOptions, wantedBy, watchWorkersWanted } from "./wanted.ts";

/** How long a deployment stays that of a launcher that reports nothing. */
const LAUNCHER_TIMEOUT_MS = 30_000;

/** The life of a machine's token unless its launcher says otherwise. */
const DEFAULT_MACHINE_LIFETIME_MS = 3_600_000;

interface LauncherServiceOptions extends WantedOptions {
  readonly accounts: Pick<Organizations, "listDeployments">;
  readonly hosting: WantedOptions["hosting"] & LauncherStorage;
  readonly keys: Pick<KeyRing, "derived">;
}

export function launcherService(
  options: LauncherServiceOptions,
): ServiceImpl<typeof LauncherService> {
  const { accounts, hosting, keys, now } = options;
  const machines = new MachineTokens((purpose) => keys.derived(purpose));
  return {
    watchWorkersWanted: watchWorkersWanted(options, launchToken),

    async reportLaunches({ launcher, on, hostname, reports }, { values }) {
      const token = launchToken(values);
      const { organizationId, tokenId } = token;
      const own = reports.filter(({ deploymentId }) => launches(token, deploymentId));
      const held = await hosting.holdLaunches({
        ...{ organizationId, tokenId, launcher, nowMs: now(), ttlMs: LAUNCHER_TIMEOUT_MS },
        reports: own.map((report) => ({ on, hostname: plain(hostname), ...factsOf(report) })),
      });
      return { deploymentIds: held };
    },

    async endLaunches({ launcher }, { values }) {
      const { organizationId, tokenId } = launchToken(values);
      await hosting.endLaunches({ organizationId, tokenId, launcher });
      return {};
    },

    async createMachineToken({ launcher, deploymentId, machine, lifetime }, { values }) {
      const token = launchToken(values);
      const { organizationId, tokenId, generation } = token;
      if (!launches(token, deploymentId)) {
        throw deploymentUnknown(token);
      }
      const nowMs = now();
      const holder = { organizationId, tokenId, launcher, deploymentId, nowMs };
      if (!(await hosting.holdsLaunch(holder))) {
        throw problem(
          "LAUNCHER_REPLACED",
          "the deployment is not this launcher's: another one starts its machines, or this one has not reported for half a minute",
        );
      }
      const lifetimeMs = lifetime ? milliseconds(lifetime) : DEFAULT_MACHINE_LIFETIME_MS;
      const expiresAtMs = Math.min(
        nowMs + Math.min(lifetimeMs, MAX_MACHINE_LIFETIME_MS),
        token.expiresAtMs,
      );
      const value = machines.make({
        ...{ organizationId, tokenId, generation, deploymentId, machine, expiresAtMs },
      });
      return { value, expiresAt: timestampFromMs(expiresAtMs) };
    },

    async listLaunches(_, ctx) {
      const { organizationId } = memberOf(ctx);
      const found = await hosting.listLaunches({ organizationId, nowMs: now() });
      if (found.length === 0) {
        return {};
      }
      const deployments = await deploymentsOf(accounts, organizationId);
      const wanted = await wantedBy(options, organizationId, deployments);
      return {
        launches: deployments.flatMap(({ deploymentId, name }) =>
          found
            .filter((one) => one.deploymentId === deploymentId)
            .map(({ on, hostname, machines, starting, joined, failed, reason }) => ({
              ...{ deployment: name, on, hostname, machines, starting, joined, failed, reason },
              workersWanted: wanted.find((one) => one.deploymentId === deploymentId)?.workers ?? 0,
            })),
        ),
      };
    },
  };
}

/** Access control has let only tokens with launch access through. */
function launchToken(values: ContextValues): TokenPrincipal {
  const principal = principalOf(values);
  if (principal?.kind !== "token" || !principal.access.launch) {
    throw problem("ACCESS_DENIED", "this asks for a token with launch access");
  }
  return principal;
}

function factsOf({ deploymentId, machines, starting, joined, failed, reason }: LaunchReport) {
  return { deploymentId, machines, starting, joined, failed, reason: plain(reason) };
}

/** In one line and without what a terminal or a page takes for a command: it is what a cluster or a machine wrote. */
function plain(text: string): string {
  return stripVTControlCharacters(text)
    .replaceAll(/[\s\p{Cc}\p{Bidi_Control}]+/gu, " ")
    .trim();
}
