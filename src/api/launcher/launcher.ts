/**
 * LauncherService: what programs that start machines ask, and say. A deployment is one launcher's
 * at a time, by a lease that each report prolongs; without it there are no tokens for machines.
 */
import { stripVTControlCharacters } from "node:util";
import { create } from "@bufbuild/protobuf";
import { durationMs } from "@bufbuild/protobuf/wkt";
import type { ContextValues, ServiceImpl } from "@connectrpc/connect";
import {
  type LauncherService,
  type LaunchReport,
  type WorkersWanted,
  WorkersWantedSchema,
} from "../../../gen/tessera/v1/launcher_pb.js";
import type { KeyRing } from "../../auth/keys.ts";
import { MAX_MACHINE_LIFETIME_MS, MachineTokens } from "../../auth/machine-token.ts";
import { deploymentUnknown, launches } from "../../auth/permissions.ts";
import { principalOf, type TokenPrincipal } from "../../auth/principal.ts";
import { problem } from "../../errors.ts";
import { memberOf } from "../../server/rpc/engine/caller.ts";
import type { DeploymentRecord, Organizations } from "../../storage/accounts/organizations.ts";
import type { LauncherStorage } from "../../storage/hosting/launchers.ts";
import { timestampFromMs } from "../../time/messages.ts";
import { type DeploymentLists, deploymentsOf } from "../deployments-of.ts";
import { Followers, type ShownById, shownById, tellingDeployments } from "../follow.ts";
import { type AllWorkersOptions, allWorkersOf } from "../machine/machine.ts";
import { milliseconds } from "../task/messages.ts";

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

// WatchWorkersWanted: how many workers should join the deployments of a token, and which machines
// have. Each node says what it wants for its share of the load; what other nodes have reported is
// up to five seconds old.

interface WantedOptions extends AllWorkersOptions {
  readonly accounts: DeploymentLists;
}

type State = ShownById<WorkersWanted>;

/** The implementation of WatchWorkersWanted. */
function watchWorkersWanted(
  options: WantedOptions,
  tokenOf: (values: ContextValues) => TokenPrincipal,
): ServiceImpl<typeof LauncherService>["watchWorkersWanted"] {
  const followers = new Followers<State>("what deployments want");
  return async function* ({ followFor }, { values, signal }) {
    const token = tokenOf(values);
    const { organizationId, tokenId } = token;
    const read = async (before?: State): Promise<State> => {
      const all = await deploymentsOf(options.accounts, organizationId);
      const own = all.filter(({ deploymentId }) => launches(token, deploymentId));
      const messages = await wantedBy(options, organizationId, own);
      return shownById(
        WorkersWantedSchema,
        messages.map((one) => [one.deploymentId, one] as const),
        before,
      );
    };
    // A token that is changed is followed anew: the stream ends where it loses a deployment.
    const { allDeployments, deployments } = token;
    const key = JSON.stringify([tokenId, allDeployments, deployments]);
    const forMs = followFor && durationMs(followFor);
    yield* followers.follow({ organizationId, key, read, forMs, signal }, tellingDeployments);
  };
}

/** What these deployments of an organization want. */
async function wantedBy(
  options: WantedOptions,
  organizationId: string,
  deployments: readonly DeploymentRecord[],
): Promise<WorkersWanted[]> {
  const workers = await allWorkersOf(options, organizationId);
  const byDeployment = Map.groupBy(workers, ({ deploymentId }) => deploymentId);
  return deployments.map(({ deploymentId, name, desiredState, settings }) => {
    const nodes = byDeployment.get(deploymentId) ?? [];
    const wanted = nodes.reduce((sum, node) => sum + (node.wanted ?? 0), 0);
    return create(WorkersWantedSchema, {
      deploymentId,
      deployment: name,
      workers: desiredState === "running" ? Math.min(wanted, settings.maxWorkers) : 0,
      requires: { ...settings.requires },
      machines: nodes
        .flatMap(({ launched = [] }) => launched)
        .toSorted((one, other) => (one.machine < other.machine ? -1 : 1)),
    });
  });
}
