/** Which folders may import which. */
import { type Import, isPackage } from "./imports.ts";

/** What carries calls over a network. */
const TRANSPORT = /^(?:fastify|@fastify\/|@connectrpc\/|node:(?:http|https|http2|net|tls|dgram)$)/;

export interface Rule {
  readonly rule: string;
  readonly of: readonly string[];
  readonly allows: (to: Import) => boolean;
}

const startsWithAny =
  (...starts: readonly string[]) =>
  ({ to }: Import): boolean =>
    starts.some((start) => to.startsWith(start));

/** What the protocols over HTTP that only translate may know. */
const TRANSCODING = [
  "gen/",
  "src/errors.ts",
  "src/server/http/",
  "src/collections/",
  "src/time/",
  "src/service/input/charset.ts",
];

/** What imports nothing: browsers and commands have it, too. */
const SELF_CONTAINED = [
  "src/collections/csv.ts",
  "src/collections/exact-json.ts",
  "src/collections/key-with.ts",
  "src/collections/nearest.ts",
  "src/collections/sizes.ts",
  "src/time/backoff.ts",
  "src/time/race.ts",
];

/**
 * What commands load when they run something on this machine, by who loads it. All others speak to
 * a platform, through the client alone.
 */
const RUN_HERE: readonly (readonly [command: string, ...loads: readonly string[]])[] = [
  ["src/cli/serve/serve.ts", "src/config/", "src/app/serve.ts", "src/service/openapi/example.ts"],
  ["src/cli/start/start.ts", "src/config/", "src/app/start.ts"],
  ["src/cli/worker/worker.ts", "src/config/", "src/app/worker.ts"],
  ["src/cli/launcher/launcher.ts", "src/config/", "src/app/launcher.ts"],
  ["src/cli/admin/", "src/config/", "src/app/operate/"],
  ["src/cli/build/", "src/artifacts/"],
  ["src/cli/building.ts", "src/config/build.ts", "src/artifacts/"],
  // Of what is built here; what it is deployed to, it reaches as all others do.
  ["src/cli/model/files.ts", "src/artifacts/"],
  ["src/cli/push-model.ts", "src/artifacts/"],
  ["src/cli/deploy/models.ts", "src/artifacts/bento-models.ts", "src/artifacts/artifact-error.ts"],
  ["src/cli/deploy/run.ts", "src/artifacts/", "src/service/openapi/example.ts"],
];

/** What every storage adapter may know. */
const ADAPTERS_SHARE = [
  "src/storage/claims-by-key.ts",
  "src/storage/storage.ts",
  "src/storage/backup.ts",
  "src/storage/database-facts.ts",
  "src/storage/days.ts",
  "src/storage/leases.ts",
  "src/storage/listing.ts",
  "src/storage/pieces.ts",
  "src/storage/piece-runs.ts",
  "src/storage/queues.ts",
  "src/storage/task-search.ts",
  "src/storage/migration.ts",
  "src/storage/stored.ts",
  "src/storage/unavailable.ts",
  "src/storage/accounts/",
  "src/storage/hosting/",
  "src/storage/metrics/",
  "src/storage/sql/",
  "src/tasks/",
  "src/errors.ts",
];

/** Types that the storage port and its adapters take from what node and worker say to each other. */
const isProtocolType = (it: Import): boolean => it.to.startsWith("src/protocol/") && it.typeOnly;

export const RULES: readonly Rule[] = [
  {
    // Of node:net it is isIP, which tells an address from other text.
    rule: "protocol, collections and time import only packages, and no transport",
    of: ["src/protocol/", "src/collections/", "src/time/"],
    allows: (it) =>
      isPackage(it) &&
      (!TRANSPORT.test(it.to) ||
        (it.from === "src/collections/networks.ts" && it.to === "node:net")),
  },
  {
    rule: "sdk imports only the protocol, collections, gen and packages",
    of: ["src/sdk/"],
    allows: (it) =>
      (isPackage(it) && (it.typeOnly || !TRANSPORT.test(it.to))) ||
      startsWithAny("gen/", "src/protocol/", "src/collections/")(it),
  },
  {
    // The worker's channel is a socket that it was started with, the relay is its way to the egress
    // proxy, and mounted servers are given connections to the node.
    rule: "worker imports only what its process may read",
    of: ["src/worker/"],
    allows: (it) =>
      (isPackage(it) && (it.typeOnly || !TRANSPORT.test(it.to))) ||
      startsWithAny("src/sdk/", "src/protocol/", "src/collections/")(it) ||
      (["channel", "egress-relay", "program", "restrict"].some(
        (name) => it.from === `src/worker/${name}.ts`,
      ) &&
        it.to === "node:net") ||
      (["mounts", "program", "requests", "sockets"].some(
        (name) => it.from === `src/worker/${name}.ts`,
      ) &&
        it.to === "node:http"),
  },
  {
    rule: "client imports only gen, packages, and JSON with its numbers",
    of: ["src/client/"],
    allows: (it) => isPackage(it) || startsWithAny("gen/", "src/collections/exact-json.ts")(it),
  },
  {
    rule: "cli speaks through client; what a command runs on this machine, it loads when it runs",
    of: ["src/cli/"],
    allows: (it) =>
      isPackage(it) ||
      startsWithAny("src/client/", ...SELF_CONTAINED)(it) ||
      it.typeOnly ||
      (it.dynamic &&
        RUN_HERE.some(
          ([command, ...loads]) => it.from.startsWith(command) && startsWithAny(...loads)(it),
        )),
  },
  {
    rule: "cli knows the types of app, config, artifacts and protocol, and no others",
    of: ["src/cli/"],
    allows: (it) =>
      isPackage(it) ||
      it.dynamic ||
      startsWithAny(
        "src/client/",
        "src/app/",
        "src/config/",
        "src/artifacts/",
        "src/protocol/",
        ...SELF_CONTAINED,
      )(it),
  },
  {
    // Of the client it takes how the reason of an error is read.
    rule: "the agent speaks to a platform by WorkerService, and knows neither server nor storage adapters",
    of: ["src/agent/"],
    allows: (it) =>
      isPackage(it) ||
      it.to === "src/client/error.ts" ||
      startsWithAny(
        "gen/",
        "src/artifacts/",
        "src/deployments/",
        "src/storage/files/",
        "src/hosting/",
        "src/log/log.ts",
        "src/metrics/",
        "src/pool/",
        "src/protocol/",
        "src/service/mounts.ts",
        "src/storage/accounts/",
        "src/storage/blobs.ts",
        "src/storage/deployment-settings.ts",
        "src/time/",
      )(it),
  },
  {
    // Of the client it takes how the reason of an error is read.
    rule: "the launcher speaks to a platform by LauncherService, and knows nothing else of it",
    of: ["src/agent/launcher/"],
    allows: (it) =>
      isPackage(it) ||
      it.to === "src/client/error.ts" ||
      startsWithAny("gen/", "src/log/log.ts", "src/time/")(it),
  },
  {
    rule: "console speaks only the public API",
    of: ["src/console/"],
    allows: (it) =>
      isPackage(it) ||
      startsWithAny("src/client/", ...SELF_CONTAINED)(it) ||
      // Of the messages only the types: the browser gets no descriptors.
      (it.typeOnly && startsWithAny("gen/tessera/")(it)),
  },
  {
    rule: "http knows no protocol above it and nothing behind the protocols",
    of: ["src/server/http/"],
    // Of services it knows the heads of requests and answers alone, and whose cookies are the platform's.
    allows: (it) =>
      isPackage(it) ||
      startsWithAny(
        "gen/",
        "src/errors.ts",
        "src/collections/",
        "src/time/",
        "src/auth/cookies.ts",
      )(it) ||
      (it.to === "src/protocol/heads.ts" && it.typeOnly),
  },
  {
    rule: "what is spoken on the port knows none of the services that are spoken to",
    of: ["src/server/"],
    allows: (it) => !startsWithAny("src/api/", "src/app/", "src/cli/", "src/console/")(it),
  },
  {
    rule: "rest imports neither rpc nor storage nor what they work on",
    of: ["src/server/rest/"],
    allows: (it) => isPackage(it) || startsWithAny(...TRANSCODING)(it),
  },
  {
    rule: "the data plane imports neither rpc nor storage nor what they work on",
    of: ["src/server/dataplane/"],
    allows: (it) => isPackage(it) || startsWithAny(...TRANSCODING)(it),
  },
  {
    rule: "the storage port knows only the domain",
    of: ["src/storage/storage.ts"],
    allows: (it) =>
      startsWithAny(
        "src/tasks/",
        "src/protocol/",
        "src/storage/accounts/",
        "src/storage/hosting/",
        "src/storage/metrics/",
        "src/storage/backup.ts",
        "src/storage/claims-by-key.ts",
        "src/storage/database-facts.ts",
        "src/storage/leases.ts",
        "src/storage/listing.ts",
        "src/storage/pieces.ts",
        "src/storage/queues.ts",
        "src/storage/task-key.ts",
      )(it) && it.typeOnly,
  },
  {
    rule: "accounts are stored without knowing who stores them, or who asks",
    of: ["src/storage/accounts/"],
    allows: (it) => it.to === "src/storage/deployment-settings.ts" && it.typeOnly,
  },
  {
    rule: "hosting and metrics are stored beside the accounts, without knowing who stores them, or who asks",
    of: ["src/storage/hosting/", "src/storage/metrics/"],
    allows: (it) =>
      startsWithAny("src/storage/accounts/")(it) ||
      (it.to === "src/storage/deployment-settings.ts" && it.typeOnly),
  },
  {
    rule: "the SQL that both databases share knows the ports and neither adapter",
    of: ["src/storage/sql/"],
    allows: startsWithAny(
      "src/storage/accounts/",
      "src/storage/hosting/",
      "src/storage/metrics/",
      "src/storage/days.ts",
      "src/storage/deployment-settings.ts",
    ),
  },
  {
    rule: "the SQLite adapter imports the port and the domain, no other adapter",
    of: ["src/storage/sqlite/"],
    allows: (it) =>
      (isPackage(it) && !TRANSPORT.test(it.to)) ||
      startsWithAny(
        ...ADAPTERS_SHARE,
        "src/storage/lock-file.ts",
        "src/storage/private-file.ts",
      )(it) ||
      isProtocolType(it),
  },
  {
    rule: "the Postgres adapter imports the port and the domain, no other adapter",
    of: ["src/storage/postgres/"],
    allows: (it) =>
      isPackage(it) ||
      startsWithAny(...ADAPTERS_SHARE)(it) ||
      isProtocolType(it) ||
      it.to === "src/storage/postgres-address.ts" ||
      (it.to === "src/storage/notifier.ts" && it.typeOnly),
  },
  {
    rule: "tasks are pure: the only thing from outside are random numbers",
    of: ["src/tasks/"],
    allows: (it) => it.to === "src/collections/bytes.ts" || isProtocolType(it),
  },
  {
    // ContextValues, by which interceptors hand on who is calling, is a typed map, not a transport.
    rule: "auth knows no transport, and only the types of what it works with",
    of: ["src/auth/"],
    allows: (it) =>
      (isPackage(it) && !TRANSPORT.test(it.to)) ||
      startsWithAny("gen/", "src/errors.ts", "src/collections/", "src/tasks/id.ts")(it) ||
      (startsWithAny(
        "src/storage/accounts/",
        "src/storage/hosting/",
        "src/storage/notifier.ts",
        "src/log/log.ts",
      )(it) &&
        it.typeOnly) ||
      (it.from === "src/auth/principal.ts" && it.to === "@connectrpc/connect"),
  },
  {
    rule: "metrics know no transport, and only the types of how nodes share them",
    of: ["src/metrics/"],
    allows: (it) =>
      (isPackage(it) && !TRANSPORT.test(it.to)) ||
      (it.to === "src/storage/metrics/metrics.ts" && it.typeOnly),
  },
  {
    rule: "only its adapter knows OpenTelemetry",
    of: ["src/"],
    allows: (it) => !it.to.startsWith("@opentelemetry/") || it.from.startsWith("src/tracing/otlp/"),
  },
  {
    rule: "only its adapter knows pino",
    of: ["src/"],
    allows: (it) => !/^pino(?:-|$)/.test(it.to) || it.from === "src/log/pino.ts",
  },
  {
    rule: "tracing knows no transport, no storage and nothing that is traced",
    of: ["src/tracing/"],
    allows: (it) =>
      (isPackage(it) && !TRANSPORT.test(it.to)) ||
      it.to.startsWith("src/time/") ||
      (it.to === "src/metrics/metrics.ts" && it.typeOnly),
  },
  {
    rule: "what runs behind the protocols knows neither them nor adapters",
    of: [
      "src/queue/",
      "src/pool/",
      "src/service/",
      "src/deployments/",
      "src/artifacts/",
      "src/hosting/",
    ],
    allows: (it) =>
      !startsWithAny(
        "src/api/",
        "src/server/",
        "src/cli/",
        "src/console/",
        "src/client/",
        "src/storage/sqlite/",
        "src/storage/postgres/",
      )(it),
  },
];
