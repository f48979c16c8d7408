import { existsSync, readdirSync } from "node:fs";
import { basename, join } from "node:path";
import { describe, expect, it } from "vitest";
import { circles } from "./architecture/circles.ts";
import {
  code,
  describeImport,
  filesBelow,
  imports,
  importsFrom,
  isPackage,
  modules,
  ROOT,
  read,
  source,
} from "./architecture/imports.ts";
import { PROGRAMS, STARTERS } from "./architecture/programs.ts";
import { RULES } from "./architecture/rules.ts";

const EXPORTED_TYPE = /^export (?:abstract )?(?:interface|class|enum|type) (?<name>\w+)(?=[ <=])/gm;

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

  it("name no package that is not shipped with the program, but in the console, which is built", () => {
    const { dependencies, peerDependencies } = JSON.parse(read("package.json"));
    const shipped = Object.keys({ ...dependencies, ...peerDependencies });
    const found = imports
      .filter((one) => isPackage(one) && !/^src\/console\/app\//.test(one.from))
      // A name that is put in is in a text that the program writes.
      .filter(({ to }) => !/^node:|\$/.test(to))
      .filter(({ to }) => !shipped.some((name) => to === name || to.startsWith(`${name}/`)));
    expect(found.map(describeImport)).toEqual([]);
  });

  it("leave V8's serialization to nobody: what it reads can end a process", () => {
    const users = imports.filter(({ to }) => /^(?:node:)?v8$/.test(to));
    expect(users.map(({ from }) => from)).toEqual(["src/worker/restrict.ts"]);
  });

  it("make times of messages in time/messages.ts, which rounds them: others may have fractions", () => {
    const others = ["src/server", "src/api", "src/agent"]
      .flatMap(filesBelow)
      .filter((file) =>
        /\b(?:duration|timestamp)From(?:Ms|Date)\b[^;]*"@bufbuild\/protobuf\/wkt"|\btimestampNow\b/.test(
          read(file),
        ),
      );
    expect(others).toEqual([]);
  });

  it("name storage adapters only in app/adapters.ts, and beside each other", () => {
    const adapter = /^src\/storage\/(?:sqlite|postgres|cells|blobs)\//;
    const outside = imports.filter(({ from, to }) => adapter.test(to) && !adapter.test(from));
    expect([...new Set(outside.map(({ from }) => from))]).toEqual(["src/app/adapters.ts"]);
  });

  it("show the types of accounts, hosting and metrics to everybody, and their SQL to storage adapters", () => {
    const outside = imports.filter(
      ({ from, to, typeOnly }) =>
        (/^src\/storage\/(?:accounts|hosting|metrics)\//.test(to) &&
          !from.startsWith("src/storage/") &&
          !typeOnly) ||
        (to.startsWith("src/storage/sql/") &&
          !/^src\/storage\/(?:sql|sqlite|postgres|cells)\//.test(from)),
    );
    expect(outside.map(describeImport)).toEqual([]);
  });

  it("name the adapter of tracing only in app/adapters.ts, which loads it where it is configured", () => {
    const adapter = imports.filter(
      ({ from, to }) => /^src\/tracing\/otlp\//.test(to) && !/^src\/tracing\//.test(from),
    );
    expect(adapter.map(({ from }) => from)).toEqual(["src/app/adapters.ts"]);
    expect(read("src/app/adapters.ts")).toContain('await import("../tracing/otlp/otlp.ts")');
  });

  it("run in no circle, neither of folders nor of files, at any level", () => {
    expect(circles()).toEqual([]);
  });

  it("lead to the process edge from nowhere", () => {
    const edge = imports.filter(({ to }) => to === "src/main.ts");
    expect(edge.map(describeImport)).toEqual([]);
    const root = imports.filter(
      (it) => it.to.startsWith("src/app/") && !it.from.startsWith("src/app/") && !it.typeOnly,
    );
    const here = /^src\/cli\/(?:admin|launcher|serve|start|worker)\//;
    expect(root.filter(({ from, dynamic }) => !dynamic || !here.test(from))).toEqual([]);
    expect(root.length).toBeGreaterThan(0);
  });
});

describe("streams", () => {
  const inServer = (pattern: RegExp): string[] =>
    ["src/server", "src/api"]
      .flatMap(filesBelow)
      .filter((path) => pattern.test(code(path)))
      .toSorted();

  it("of all protocols come through one chain of interceptors, which ends them with their credential", () => {
    const composer = "src/server/protocols.ts";
    expect(inServer(/\bcreateInvoker\(|\bonlyOn\(hostKind, rpcPlugin\)/)).toEqual([
      composer,
      "src/server/rpc/engine/invoker.ts",
    ]);
    expect(inServer(/\b(?:createConnectRouter|fastifyConnectPlugin)\b[(,]/)).toEqual([
      "src/server/rpc/engine/plugin.ts",
    ]);
    const [, chain = ""] = /const interceptors = \[([\s\S]*?)\n {2}\];/.exec(code(composer)) ?? [];
    expect(chain.match(/\bcreate\w+Interceptor\(/g)).toEqual([
      "createAuthenticateInterceptor(",
      "createAuthorizeInterceptor(",
      "createCountInterceptor(",
      "createStandingInterceptor(",
      "createValidateInterceptor(",
    ]);
    expect(code(composer)).toContain("createInvoker({ services, interceptors })");
    expect(code(composer)).toMatch(/rpcPlugin\), \{\s*services,\s*interceptors,/);
  });

  it("are sent over HTTP by who got them from that chain, and by who sends one bounded answer", () => {
    expect(inServer(/\bReadable\.from\(|\breply\.raw\.(?:write|end)\(/)).toEqual([
      // The bytes of one result, with the range that was asked for.
      "src/server/dataplane/content.ts",
      "src/server/dataplane/events.ts",
      "src/server/dataplane/stream.ts",
      // The bytes of a request.
      "src/server/http/decoded-body.ts",
      // One page of metrics.
      "src/server/monitoring/send.ts",
      // The answer of a server, whose caller is asked for by `keepStanding`, as that of a stream.
      "src/server/mounts/mounted.ts",
      "src/server/rest/response.ts",
    ]);
    for (const path of ["dataplane/events", "dataplane/stream", "rest/response"]) {
      expect(code(`src/server/${path}.ts`)).toMatch(/\banswers(?:,|: StreamAnswer)/);
    }
  });
});

describe("programs", () => {
  it("are started in known places", () => {
    const starters = imports.filter(({ to, typeOnly }) => STARTERS.test(to) && !typeOnly);
    const places = new Set(starters.map(({ from }) => from));
    expect([...places].toSorted()).toEqual(Object.keys(PROGRAMS).toSorted());
    const others = modules.filter((path) =>
      /\bprocess\.execve\b|getBuiltinModule|node:wasi/.test(code(path)),
    );
    expect(others).toEqual([]);
  });

  it("are the interpreter of an environment only where the launcher starts them", () => {
    const withPath = (pattern: RegExp): string[] =>
      modules.filter((path) => pattern.test(code(path))).toSorted();
    // Who knows where it is, and who takes it from there, as the code of a worker.
    expect(withPath(/"bin",\s*"python"/)).toEqual([
      "src/artifacts/environments/store.ts",
      "src/artifacts/python/interpreter.ts",
    ]);
    expect(withPath(/\benvironment\.python\b/)).toEqual([
      "src/artifacts/python/build.ts",
      "src/hosting/preparation.ts",
    ]);
    const takers = imports.filter(
      ({ to, typeOnly }) => to === "src/pool/launch/python.ts" && !typeOnly,
    );
    expect(takers.map(({ from }) => from)).toEqual(["src/pool/launchers.ts"]);
  });

  it("of packages ask the interpreter of the machine: uv would run what is in another's", () => {
    const asked = filesBelow("src/artifacts").flatMap((path) =>
      [...code(path).matchAll(/"--python",\s*(?<which>[\w.]+)/g)].map(
        ({ groups }) => groups?.which,
      ),
    );
    expect(asked.length).toBeGreaterThan(3);
    expect(new Set(asked)).toEqual(new Set(["interpreter.path"]));
    const texts = filesBelow("src/artifacts").map(code).join("\n");
    expect(texts).not.toMatch(/"--compile-bytecode"|"--python-platform"|"pip", "check"/);
  });
});

describe("the root of src", () => {
  it("has at most 28 entries, and three files", () => {
    const entries = readdirSync(join(ROOT, "src"), { withFileTypes: true });
    expect(entries.length).toBeLessThanOrEqual(28);
    expect(entries.filter((it) => it.isFile()).map(({ name }) => name)).toEqual([
      "errors.ts",
      "main.ts",
      "version.ts",
    ]);
  });
});

describe("source files", () => {
  it("read the environment where a process begins, the program's and a worker's, and where a service asks for its models", () => {
    const readers = modules.filter((path) => /\bprocess\.env\b|\bprocess\[/.test(code(path)));
    expect(readers.toSorted()).toEqual(["src/main.ts", "src/sdk/models.ts", "src/worker/main.ts"]);
  });

  it("declare each exported type and class once", () => {
    const declared = modules.flatMap((path) =>
      [...code(path).matchAll(EXPORTED_TYPE)].map(({ groups = {} }) => ({
        name: groups.name ?? "",
        path,
      })),
    );
    const places = Map.groupBy(declared, ({ name }) => name);
    const twice = [...places].filter(([, found]) => found.length > 1);
    expect(twice.map(([name, found]) => [name, ...found.map(({ path }) => path)])).toEqual([]);
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

  it("have at most 600 lines", () => {
    const long = ["src", "test", "bench", "examples", "scripts"]
      .flatMap(filesBelow)
      .map((path) => ({ path, lines: read(path).split("\n").length - 1 }))
      .filter(({ lines }) => lines > 600);
    expect(long).toEqual([]);
  });

  it("are named after what they do", () => {
    const NO_NAMES =
      /^(?:utils?|commons?|helpers?|types?|models?|services?|managers?|misc|shared)$/;
    const names = source.flatMap((path) =>
      path.split("/").map((part) => basename(part).replace(/\..*$/, "")),
    );
    // Some names are the field's own: service() makes a service, in the SDK and in the page, and
    // a model is weights by name, with an API, a store and a page of its own.
    const allowed = new Set(["service", "model", "models"]);
    expect(names.filter((name) => NO_NAMES.test(name) && !allowed.has(name))).toEqual([]);
  });
});
