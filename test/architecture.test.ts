import { existsSync, readdirSync, readFileSync } from "node:fs";
import { basename, dirname, join, relative, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";

const ROOT = fileURLToPath(new URL("../", import.meta.url));

interface Import {
  /** From the repository's root, such as `src/server/rest/query.ts`. */
  readonly from: string;
  /** The same, or the name of a package. */
  readonly to: string;
  readonly typeOnly: boolean;
}

/** Source files below a folder, from the root. */
function filesBelow(folder: string): string[] {
  return readdirSync(join(ROOT, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && /\.(?:[cm]?[jt]s|css|html)$/.test(entry.name))
    .map((entry) => relative(ROOT, join(entry.parentPath, entry.name)).split(sep).join("/"))
    .filter((path) => !path.includes("node_modules/"));
}

function read(path: string): string {
  return readFileSync(join(ROOT, path), "utf8");
}

const STATEMENT =
  /^(?:import|export)\s+(?<type>type\s)?(?:[^;"']*?\sfrom\s+)?["'](?<static>[^"']+)["']/gm;
const DYNAMIC = /\bimport\(\s*["'](?<dynamic>[^"']+)["']/g;

function importsOf(from: string): Import[] {
  const text = read(from);
  return [...text.matchAll(STATEMENT), ...text.matchAll(DYNAMIC)].map(({ groups = {} }) => {
    const target = groups.static ?? groups.dynamic ?? "";
    const local = target.startsWith(".");
    return {
      from,
      to: local ? join(dirname(from), target).split(sep).join("/") : target,
      typeOnly: groups.type !== undefined,
    };
  });
}

const source = filesBelow("src");
// The page's own modules import each other in the browser, and nothing else.
const modules = source.filter((path) => /\.ts$/.test(path));
const imports = modules.flatMap(importsOf);

/** Imports of files under a path, without those of the files there among themselves. */
function importsFrom(...paths: readonly string[]): Import[] {
  const inside = (path: string): boolean => paths.some((start) => path.startsWith(start));
  return imports.filter(({ from, to }) => inside(from) && !inside(to));
}

function describeImport({ from, to, typeOnly }: Import): string {
  return `${from} -> ${to}${typeOnly ? " (types)" : ""}`;
}

/** A package, not a file of this repository. */
function isPackage({ to }: Import): boolean {
  return !/^(?:src|gen)\//.test(to);
}

/** What carries calls over a network. */
const TRANSPORT = /^(?:fastify|@fastify\/|@connectrpc\/|node:(?:http|https|http2|net|tls|dgram)$)/;

interface Rule {
  readonly rule: string;
  readonly of: readonly string[];
  readonly allows: (to: Import) => boolean;
}

const startsWithAny =
  (...starts: readonly string[]) =>
  ({ to }: Import): boolean =>
    starts.some((start) => to.startsWith(start));

/** What every storage adapter may know. */
const ADAPTERS_SHARE = [
  "src/storage/storage.ts",
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

const RULES: readonly Rule[] = [
  {
    rule: "protocol, collections and time import only packages, and no transport",
    of: ["src/protocol/", "src/collections/", "src/time/"],
    allows: (it) => isPackage(it) && !TRANSPORT.test(it.to),
  },
  {
    rule: "sdk imports only the protocol, gen and packages",
    of: ["src/sdk/"],
    allows: (it) =>
      (isPackage(it) && !TRANSPORT.test(it.to)) || startsWithAny("gen/", "src/protocol/")(it),
  },
  {
    // The worker's channel is a socket that it was started with, not a network.
    rule: "worker imports only what its process may read",
    of: ["src/worker/"],
    allows: (it) =>
      (isPackage(it) && !TRANSPORT.test(it.to)) ||
      startsWithAny("src/sdk/", "src/protocol/", "src/collections/")(it) ||
      (it.from === "src/worker/channel.ts" && it.to === "node:net"),
  },
  {
    rule: "client imports only gen and packages",
    of: ["src/client/"],
    allows: (it) => isPackage(it) || startsWithAny("gen/")(it),
  },
  {
    rule: "cli speaks through client; of what main brings it, it knows the types",
    of: ["src/cli/"],
    allows: (it) => isPackage(it) || startsWithAny("src/client/")(it) || it.typeOnly,
  },
  {
    rule: "cli knows the types of app, config, artifacts and protocol, and no others",
    of: ["src/cli/"],
    allows: (it) =>
      isPackage(it) ||
      startsWithAny(
        "src/client/",
        "src/app/",
        "src/config/",
        "src/artifacts/",
        "src/protocol/",
      )(it),
  },
  {
    rule: "console speaks only the public API",
    of: ["src/console/"],
    allows: (it) => isPackage(it) || startsWithAny("src/client/")(it),
  },
  {
    rule: "http knows no protocol above it and nothing behind the protocols",
    of: ["src/server/http/"],
    allows: (it) =>
      isPackage(it) ||
      startsWithAny("gen/", "src/errors.ts", "src/collections/random-digits.ts")(it),
  },
  {
    rule: "rest imports neither rpc nor storage nor what they work on",
    of: ["src/server/rest/"],
    allows: (it) => isPackage(it) || startsWithAny("gen/", "src/errors.ts", "src/server/http/")(it),
  },
  {
    rule: "the data plane imports neither rpc nor storage nor what they work on",
    of: ["src/server/dataplane/"],
    allows: (it) => isPackage(it) || startsWithAny("gen/", "src/errors.ts", "src/server/http/")(it),
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
      )(it) && it.typeOnly,
  },
  {
    rule: "accounts are stored without knowing who stores them, or who asks",
    of: ["src/storage/accounts/"],
    allows: () => false,
  },
  {
    rule: "hosting and metrics are stored beside the accounts, without knowing who stores them, or who asks",
    of: ["src/storage/hosting/", "src/storage/metrics/"],
    allows: startsWithAny("src/storage/accounts/"),
  },
  {
    rule: "the SQL that both databases share knows the ports and neither adapter",
    of: ["src/storage/sql/"],
    allows: startsWithAny("src/storage/accounts/", "src/storage/hosting/", "src/storage/metrics/"),
  },
  {
    rule: "the SQLite adapter imports the port and the domain, no other adapter",
    of: ["src/storage/sqlite/"],
    allows: (it) =>
      (isPackage(it) && !TRANSPORT.test(it.to)) ||
      startsWithAny(...ADAPTERS_SHARE, "src/storage/lock-file.ts")(it) ||
      isProtocolType(it),
  },
  {
    rule: "the Postgres adapter imports the port and the domain, no other adapter",
    of: ["src/storage/postgres/"],
    allows: (it) =>
      isPackage(it) ||
      startsWithAny(...ADAPTERS_SHARE)(it) ||
      isProtocolType(it) ||
      (it.to === "src/storage/notifier.ts" && it.typeOnly),
  },
  {
    rule: "tasks are pure: the only thing from outside are random numbers",
    of: ["src/tasks/"],
    allows: (it) => it.to === "src/collections/random-digits.ts" || isProtocolType(it),
  },
  {
    // ContextValues, by which interceptors hand on who is calling, is a typed map, not a transport;
    // and of node:net it is isIP, which tells an address from other text.
    rule: "auth knows no transport, and only the types of what it works with",
    of: ["src/auth/"],
    allows: (it) =>
      (isPackage(it) && !TRANSPORT.test(it.to)) ||
      startsWithAny("gen/", "src/errors.ts", "src/tasks/id.ts")(it) ||
      (startsWithAny(
        "src/storage/accounts/",
        "src/storage/hosting/",
        "src/storage/notifier.ts",
        "src/log/log.ts",
      )(it) &&
        it.typeOnly) ||
      (it.from === "src/auth/principal.ts" && it.to === "@connectrpc/connect") ||
      (it.from === "src/auth/networks.ts" && it.to === "node:net"),
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
      it.to === "src/time/log-throttle.ts" ||
      (it.to === "src/metrics/deployment.ts" && it.typeOnly),
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
        "src/server/",
        "src/cli/",
        "src/console/",
        "src/client/",
        "src/storage/sqlite/",
        "src/storage/postgres/",
      )(it),
  },
];

describe("imports", () => {
  it("are all found", () => {
    expect(imports.length).toBeGreaterThan(300);
    expect(imports.filter((it) => !isPackage(it) && !existsSync(join(ROOT, it.to)))).toEqual([]);
  });

  it.each(RULES)("$rule", ({ of, allows }) => {
    expect(
      importsFrom(...of)
        .filter((it) => !allows(it))
        .map(describeImport),
    ).toEqual([]);
  });

  it("name storage adapters only in app.ts", () => {
    const adapter = /^src\/storage\/(?:sqlite|postgres|blobs)\//;
    const outside = imports.filter(({ from, to }) => adapter.test(to) && !adapter.test(from));
    expect([...new Set(outside.map(({ from }) => from))]).toEqual(["src/app/app.ts"]);
  });

  it("show the types of accounts, hosting and metrics to everybody, and their SQL to storage adapters", () => {
    const outside = imports.filter(
      ({ from, to, typeOnly }) =>
        (/^src\/storage\/(?:accounts|hosting|metrics)\//.test(to) &&
          !from.startsWith("src/storage/") &&
          !typeOnly) ||
        (to.startsWith("src/storage/sql/") &&
          !/^src\/storage\/(?:sql|sqlite|postgres)\//.test(from)),
    );
    expect(outside.map(describeImport)).toEqual([]);
  });

  it("name the adapter of tracing only in app.ts, which loads it where it is configured", () => {
    const adapter = imports.filter(
      ({ from, to }) => /^src\/tracing\/otlp\//.test(to) && !/^src\/tracing\//.test(from),
    );
    expect(adapter.map(({ from }) => from)).toEqual(["src/app/app.ts"]);
    expect(read("src/app/app.ts")).toContain('await import("../tracing/otlp/otlp.ts")');
  });

  it("lead to the process edge from nowhere", () => {
    const edge = imports.filter(({ to }) => to === "src/main.ts");
    expect(edge.map(describeImport)).toEqual([]);
    const root = imports.filter((it) => it.to === "src/app/app.ts" && !it.typeOnly);
    expect(root.map(({ from }) => from)).toEqual(["src/main.ts"]);
  });
});

describe("source files", () => {
  it("read the environment only in config.ts", () => {
    const readers = modules.filter((path) => /\bprocess\.env\b|\bprocess\[/.test(code(path)));
    expect(readers).toEqual(["src/config/config.ts"]);
  });

  it("have no any", () => {
    const found = modules.filter((path) =>
      /[:<,|&(]\s*any\b|\bas any\b|\bany\[\]/.test(code(path)),
    );
    expect(found).toEqual([]);
  });

  it("write to no console", () => {
    expect(modules.filter((path) => /\bconsole\.\w+\(/.test(code(path)))).toEqual([]);
  });

  it("have at most 400 lines", () => {
    const long = ["src", "test", "bench", "examples", "scripts"]
      .flatMap(filesBelow)
      .map((path) => ({ path, lines: read(path).split("\n").length - 1 }))
      .filter(({ lines }) => lines > 400);
    expect(long).toEqual([]);
  });

  it("are named after what they do", () => {
    const NO_NAMES =
      /^(?:utils?|commons?|helpers?|types?|models?|services?|managers?|misc|shared)$/;
    const names = source.flatMap((path) =>
      path.split("/").map((part) => basename(part).replace(/\..*$/, "")),
    );
    // One name is the field's own: service() makes a service, in the SDK and in the page.
    const allowed = new Set(["service"]);
    expect(names.filter((name) => NO_NAMES.test(name) && !allowed.has(name))).toEqual([]);
  });
});

/** The text of a file without comments, roughly: strings stay, also those with slashes. */
function code(path: string): string {
  return read(path)
    .replace(/\/\*[\s\S]*?\*\//g, "")
    .replace(/(^|\s)\/\/.*$/gm, "$1");
}
