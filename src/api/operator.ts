/** OperatorService: the platform as its operator sees it. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";
import type {
  NodeSchema,
  OperatedOrganizationSchema,
  OperatorService,
} from "../../gen/tessera/v1/operator_pb.js";
import type { ListedOrganization, Organizations } from "../storage/accounts/organizations.ts";
import type { NodeRecord, NodeStorage } from "../storage/hosting/nodes.ts";
import type { Storage } from "../storage/storage.ts";
import { timestampFromMs } from "../time/messages.ts";
import { SharedReads } from "../time/shared-reads.ts";
import { version } from "../version.ts";
import { monitoringAskedOf } from "./organization/messages.ts";
import { PageTokens } from "./page.ts";

interface OperatorServiceOptions {
  readonly accounts: Pick<Organizations, "listOrganizations">;
  readonly hosting: Pick<NodeStorage, "listNodes">;
  readonly tasks: Pick<Storage, "describeDatabase">;
  readonly now: () => number;
}

/** How old the nodes in an answer may be, which the pages of all operators share. */
const LISTED_NODES_TTL_MS = 1_000;

const PAGES = new PageTokens({ method: "ListAllOrganizations", filter: [] });

export function operatorService({
  accounts,
  hosting,
  tasks,
  now,
}: OperatorServiceOptions): Partial<ServiceImpl<typeof OperatorService>> {
  const listed = new SharedReads<NodeRecord[]>({ maxAgeMs: LISTED_NODES_TTL_MS, now });
  return {
    async getPlatform() {
      const { sizeBytes, ...database } = await tasks.describeDatabase();
      return { version, database: { ...database, sizeBytes: BigInt(sizeBytes) } };
    },

    async listNodes() {
      const nodes = await listed.get("", () => hosting.listNodes({ nowMs: now() }));
      return { nodes: nodes.map(toNodeMessage) };
    },

    async listAllOrganizations(req) {
      const { items, next } = await accounts.listOrganizations(PAGES.query(req));
      return {
        organizations: items.map(toOrganizationMessage),
        nextPageToken: PAGES.after(next),
      };
    },
  };
}

function toNodeMessage(record: NodeRecord): MessageInitShape<typeof NodeSchema> {
  const { nodeId, url = "", startedAtMs, facts } = record;
  return {
    nodeId,
    url,
    startedAt: timestampFromMs(startedAtMs),
    ...(facts !== undefined && {
      facts: {
        ...facts,
        memoryBytes: BigInt(facts.memoryBytes),
        maxMemoryBytes: BigInt(facts.maxMemoryBytes),
        freeDiskBytes: BigInt(facts.freeDiskBytes),
        diskBytes: BigInt(facts.diskBytes),
        gpus: (facts.gpus ?? []).map(({ memoryBytes, usedBytes, holders, slice, ...gpu }) => ({
          ...gpu,
          ...(slice !== undefined && { slice: slice.index }),
          memoryBytes: BigInt(memoryBytes),
          usedBytes: BigInt(usedBytes),
          holders: [...holders],
        })),
      },
    }),
  };
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
