/** OperatorService: the platform as its operator sees it, and which nodes take work. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";
import type {
  NodeFactsSchema,
  NodeSchema,
  OperatedOrganizationSchema,
  OperatorService,
} from "../../gen/tessera/v1/operator_pb.js";
import type { ShownSetting } from "../config/settings.ts";
import { MAX_DRAINED_MACHINES } from "../hosting/membership.ts";
import { actorOf, callerOf, deed, type Sources } from "../server/rpc/engine/caller.ts";
import type { ListedOrganization, Organizations } from "../storage/accounts/organizations.ts";
import type { DrainedMachine, MachineStorage } from "../storage/hosting/machines.ts";
import type { NodeFacts, NodeRecord, NodeStorage } from "../storage/hosting/nodes.ts";
import type { Storage } from "../storage/storage.ts";
import { timestampFromMs } from "../time/messages.ts";
import { SharedReads } from "../time/shared-reads.ts";
import { version } from "../version.ts";
import { drainOf, loadMessage, machineNotFound, tooManyDrained } from "./machine/machine.ts";
import { monitoringAskedOf } from "./organization/messages.ts";
import { PageTokens } from "./page.ts";

export interface OperatorServiceOptions extends Sources {
  readonly accounts: Pick<Organizations, "listOrganizations">;
  readonly hosting: Pick<NodeStorage, "listNodes"> &
    Pick<MachineStorage, "drainMachine" | "resumeMachine" | "listDrained">;
  readonly tasks: Pick<Storage, "describeDatabase">;
  /** The settings of this node, without secrets. Default: none. */
  readonly shown?: readonly ShownSetting[] | undefined;
}

/** How old the nodes in an answer may be, which the pages of all operators share. */
const LISTED_NODES_TTL_MS = 1_000;

const PAGES = new PageTokens({ method: "ListAllOrganizations", filter: [] });

export function operatorService(
  options: OperatorServiceOptions,
): Partial<ServiceImpl<typeof OperatorService>> {
  const { accounts, hosting, tasks, shown = [], now } = options;
  const listed = new SharedReads<NodeRecord[]>({ maxAgeMs: LISTED_NODES_TTL_MS, now });
  return {
    async getPlatform() {
      const {
        sizeBytes,
        queued,
        running,
        cells = [],
        ...database
      } = await tasks.describeDatabase();
      return {
        version,
        database: {
          ...database,
          sizeBytes: BigInt(sizeBytes),
          queuedTasks: BigInt(queued),
          runningTasks: BigInt(running),
          cells: [...cells],
        },
        settings: shown.map(({ isSet, isSecret, ...setting }) => ({
          ...setting,
          set: isSet,
          secret: isSecret,
        })),
      };
    },

    async listNodes() {
      const [nodes, drained] = await Promise.all([
        listed.get("", () => hosting.listNodes({ nowMs: now() })),
        hosting.listDrained({ organizationId: undefined }),
      ]);
      const living = new Set(nodes.map(({ machine }) => machine));
      const drains = new Map(drained.map((one) => [one.machine, one]));
      return {
        nodes: nodes.map((node) => toNodeMessage(node, drains.get(node.machine))),
        away: drained
          .filter(({ machine }) => !living.has(machine))
          .map((one) => ({ machine: one.machine, ...drainOf(one) })),
      };
    },

    async drainNode({ machine }, ctx) {
      await checkMachine(machine);
      const key = { organizationId: undefined, machine, limit: MAX_DRAINED_MACHINES };
      const by = actorOf(callerOf(ctx));
      const { outcome } = await hosting.drainMachine({ ...deed(by, options), ...key });
      if (outcome === "limit") {
        throw tooManyDrained();
      }
      return {};
    },

    async resumeNode({ machine }, ctx) {
      await checkMachine(machine);
      const by = actorOf(callerOf(ctx));
      await hosting.resumeMachine({ ...deed(by, options), organizationId: undefined, machine });
      return {};
    },

    async listAllOrganizations(req) {
      const { items, next } = await accounts.listOrganizations(PAGES.query(req));
      return {
        organizations: items.map(toOrganizationMessage),
        nextPageToken: PAGES.after(next),
      };
    },
  };

  /** Throws MACHINE_NOT_FOUND for one that has no node and is not drained. */
  async function checkMachine(machine: string): Promise<void> {
    const nodes = await hosting.listNodes({ nowMs: now() });
    const drained = await hosting.listDrained({ organizationId: undefined });
    if (![...nodes, ...drained].some((one) => one.machine === machine)) {
      throw machineNotFound(machine, "has a node that lives, or is drained");
    }
  }
}

function toNodeMessage(record: NodeRecord, drained: DrainedMachine | undefined) {
  const { nodeId, url = "", machine, startedAtMs, heardAtMs, facts } = record;
  return {
    nodeId,
    url,
    machine,
    startedAt: timestampFromMs(startedAtMs),
    heardAt: timestampFromMs(heardAtMs),
    ...(facts !== undefined && { facts: toFactsMessage(facts) }),
    ...drainOf(drained),
  } satisfies MessageInitShape<typeof NodeSchema>;
}

function toFactsMessage({ load, labels, gpus = [], ...facts }: NodeFacts) {
  return {
    ...facts,
    memoryBytes: BigInt(facts.memoryBytes),
    maxMemoryBytes: BigInt(facts.maxMemoryBytes),
    freeDiskBytes: BigInt(facts.freeDiskBytes),
    diskBytes: BigInt(facts.diskBytes),
    labels: { ...labels },
    ...(load !== undefined && { load: loadMessage(load) }),
    gpus: gpus.map(({ memoryBytes, usedBytes, holders, slice, ...gpu }) => ({
      ...gpu,
      ...(slice !== undefined && { slice: slice.index }),
      memoryBytes: BigInt(memoryBytes),
      usedBytes: BigInt(usedBytes),
      holders: [...holders],
    })),
  } satisfies MessageInitShape<typeof NodeFactsSchema>;
}

function toOrganizationMessage(
  record: ListedOrganization,
): MessageInitShape<typeof OperatedOrganizationSchema> {
  const { name, displayName, createdAtMs, members, deployments } = record;
  const { monitoringEnabled, invitationLinksEnabled } = record;
  return {
    name,
    displayName,
    createdAt: timestampFromMs(createdAtMs),
    members,
    deployments,
    monitoringEnabled,
    invitationLinksEnabled,
    ...monitoringAskedOf(record),
  };
}
