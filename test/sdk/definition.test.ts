import { describe, expect, it } from "vitest";
import * as z from "zod";
import { parseDuration } from "../../src/protocol/duration.ts";
import { parseImage } from "../../src/protocol/image.ts";
import type { EndpointManifest } from "../../src/protocol/manifest.ts";
import { readyService } from "../../src/sdk/describe.ts";
import {
  api,
  BadInput,
  type EndpointDecorator,
  EndpointError,
  type EndpointOptions,
  file,
  type InputSchema,
  type OutputSchema,
  type SetupContext,
  type SocketContext,
  type SocketDecorator,
  service,
  socket,
  task,
  withJsonSchema,
} from "../../src/sdk/index.ts";
import type { ServiceMount } from "../../src/sdk/mounts.ts";
import { type ServiceDefinition, serviceDefinitionOf } from "../../src/sdk/service.ts";
import type { ServedSocket } from "../../src/sdk/sockets.ts";

async function describeOne<In extends InputSchema, Out extends OutputSchema>(
  options: EndpointOptions<In, Out>,
): Promise<EndpointManifest> {
  const exported = service({ name: "one", endpoints: { go: task(options as object, () => 1) } });
  const { manifest } = await readyService(exported, definitionOf(exported));
  return manifest.endpoints[0] as EndpointManifest;
}

function definitionOf(exported: unknown): ServiceDefinition {
  const definition = serviceDefinitionOf(exported);
  if (definition === undefined) {
    throw new Error("not a service");
  }
  return definition;
}

/** A method that this decorator has marked. */
function methodOf(decorator: EndpointDecorator<never, unknown>): () => number {
  const method = () => 1;
  decorator(method, {
    kind: "method",
    name: "go",
    static: false,
    private: false,
  } as ClassMethodDecoratorContext<unknown, typeof method>);
  return method;
}

describe("the input of an endpoint", () => {
  it("keeps references of a recursive schema whole when it is one argument of many", async () => {
    interface Tree {
      readonly children: Tree[];
    }
    const tree: z.ZodType<Tree> = z.object({ children: z.array(z.lazy(() => tree)) });
    const { input } = await describeOne({ input: { "a/tree": tree, size: z.number() } });
    expect(JSON.stringify(input)).toMatch(/"\$ref":"#\/properties\/a~1tree/);
  });

  it("is refused when it is a union", async () => {
    const input = z.union([z.object({ a: z.string() }), z.object({ b: z.string() })]);
    await expect(describeOne({ input })).rejects.toThrow(
      'service "one", endpoint "go": input must be a schema of one object, whose members are the arguments, not a union',
    );
  });

  it("has properties even when the schema names none", async () => {
    const { input } = await describeOne({ input: z.record(z.string(), z.number()) });
    expect(input).toMatchObject({ type: "object", properties: {} });
  });

  it("is refused when no JSON Schema can be made of it, naming the argument", async () => {
    await expect(describeOne({ input: { when: z.date() } })).rejects.toThrow(
      /endpoint "go": argument when: no JSON Schema can be made of the input side .*withJsonSchema/,
    );
  });

  it("takes a JSON Schema given by hand", async () => {
    const when = withJsonSchema(z.coerce.date(), {
      input: { type: "string", format: "date-time" },
    });
    const { input } = await describeOne({ input: { when } });
    expect(input).toMatchObject({ properties: { when: { type: "string", format: "date-time" } } });
  });
});

describe("the output of an endpoint", () => {
  it("is described by its output side", async () => {
    const output = z.object({ count: z.int().default(1) });
    expect((await describeOne({ output })).output).toMatchObject({ required: ["count"] });
  });

  it.each([
    ["an optional file", file().optional(), "cannot be optional"],
    ["a list of files", file().array(), "output can be one file"],
    ["a value with a file inside", z.object({ page: z.file() }), "output can be one file"],
  ])("is refused when it is %s", async (_, output, message) => {
    await expect(describeOne({ output: output as OutputSchema })).rejects.toThrow(message);
  });
});

describe("the options of an endpoint", () => {
  it.each([
    [
      { timeout: 0 },
      'timeout must be milliseconds or a duration such as "30s" or "5m", from 1ms to 1d',
    ],
    [{ abortGrace: "2d" }, "abortGrace must be"],
    [{ idempotent: "yes" }, "idempotent must be true or false"],
    [{ retention: "1ms" }, "retention must be"],
    [{ concurrency: 0 }, "concurrency must be a whole number from 1 to 1000, not 0"],
    [{ concurrency: 1.5 }, "concurrency must be"],
    [{ retries: { max: 101 } }, "retries.max must be"],
    [{ retries: { max: 1, backoff: "2h" } }, "retries.backoff must be"],
    [{ retries: 3 }, "retries must be an object"],
    [{ concurrencyPerKey: 0 }, "concurrencyPerKey must be a whole number from 1 to 10000, not 0"],
    [
      { ratePerKey: "0/min" },
      'ratePerKey must be a number from 1 to 10000 and a time, s, min, h or d, such as "10/min", not "0/min"',
    ],
    [{ ratePerKey: "1e9/s" }, "ratePerKey must be"],
    [{ ratePerKey: "10001/s" }, "ratePerKey must be"],
    [{ ratePerKey: "10/fortnight" }, "ratePerKey must be"],
    [{ ratePerKey: "1.5/min" }, "ratePerKey must be"],
    [{ ratePerKey: " 10/min" }, "ratePerKey must be"],
    [{ ratePerKey: "10/min\n" }, "ratePerKey must be"],
    [{ ratePerKey: "/s" }, "ratePerKey must be"],
    [{ ratePerKey: 10 }, "ratePerKey must be"],
    [{ fair: 1 }, 'fair must be true, false or "seconds"'],
    [{ fair: "minutes" }, 'fair must be true, false or "seconds"'],
    [{ queueLimit: "many" }, 'queueLimit must be a whole number from 1 to 10000000, not "many"'],
    [{ priority: Number.NaN }, "priority must be"],
    [{ maxJson: "4MB" }, 'maxJson must be bytes or a size such as "512KiB" or "4MiB"'],
    [{ maxJson: 100 }, "maxJson must be"],
    [{ maxJson: "1024MiB" }, "maxJson must be"],
    [{ description: 7 }, "description must be a string"],
    [{ place: "there" }, 'place must be "local", "remote" or "any"'],
    [{ requires: ["gpu"] }, "requires must have labels with their values"],
    [{ requires: { "no spaces": "*" } }, 'requires: label "no spaces" must have a name'],
    [{ requires: { gpu: "" } }, 'requires: label "gpu" must have a value'],
    [{ requires: { gpu: 1 } }, 'requires: label "gpu" must have a value'],
  ])("are checked: %o", (options, message) => {
    const define = () =>
      service({ name: "one", endpoints: { go: task(options as object, () => 1) } });
    expect(define).toThrow(`service "one", endpoint "go": ${message}`);
  });
});

describe("the placement of a service", () => {
  it("is in its manifest where it says something, and of each endpoint apart", async () => {
    const exported = service({
      name: "one",
      requires: { zone: "b" },
      endpoints: {
        ask: api({ place: "local", requires: {} }, () => 1),
        learn: task({ requires: { gpu: "*" }, place: "remote" }, () => 1),
        plain: task({}, () => 1),
      },
    });
    const { manifest } = await readyService(exported, definitionOf(exported));
    expect(manifest.requires).toEqual({ zone: "b" });
    expect(manifest).not.toHaveProperty("place");
    const placements = manifest.endpoints.map(({ requires, place }) => ({ requires, place }));
    expect(placements).toEqual([
      { requires: undefined, place: "local" },
      { requires: { gpu: "*" }, place: "remote" },
      { requires: undefined, place: undefined },
    ]);
    expect(manifest.endpoints[2]).not.toHaveProperty("requires");
  });

  it("says how many processes a worker may start, from 0 to 1,000", async () => {
    const endpoints = { go: api({}, () => 1) };
    const exported = service({ name: "one", processes: 8, endpoints });
    const { manifest } = await readyService(exported, definitionOf(exported));
    expect(manifest.processes).toBe(8);
    for (const processes of [-1, 1_001, 1.5]) {
      expect(() => service({ name: "one", processes, endpoints })).toThrow(
        "processes must be a whole number from 0 to 1000",
      );
    }
  });

  it("names system packages, and neither options nor paths of apt", async () => {
    const endpoints = { go: api({}, () => 1) };
    const packages = ["ffmpeg", "g++", "libgl1=1.6.0-1", "poppler-utils"];
    const exported = service({ name: "one", packages, endpoints });
    const { manifest } = await readyService(exported, definitionOf(exported));
    expect(manifest.packages).toEqual(packages);
    for (const odd of ["-oDir=/", "./a.deb", "ffmpeg-", "a", "FFmpeg", "a b", "ffmpeg=", ""]) {
      expect(() => service({ name: "one", packages: [odd], endpoints })).toThrow(
        `packages has ${JSON.stringify(odd)}, which is no name of a system package`,
      );
    }
  });

  it("says what each worker has of GPUs", async () => {
    const endpoints = { go: api({}, () => 1) };
    const exported = service({ name: "one", gpus: 2, gpuMemory: "20GiB", endpoints });
    const { manifest } = await readyService(exported, definitionOf(exported));
    expect(manifest).toMatchObject({ gpus: 2, gpuMemoryMib: 20_480 });
    const half = service({ name: "one", gpus: 0.5, endpoints });
    expect((await readyService(half, definitionOf(half))).manifest).toMatchObject({ gpus: 0.5 });
    for (const gpus of [17, -1, 1.5, 0.125, Number.NaN, Number.POSITIVE_INFINITY]) {
      expect(() => service({ name: "one", gpus, endpoints })).toThrow(
        `gpus must be a whole number from 0 to 16, or a part of one GPU in hundredths, such as 0.5, not ${gpus}`,
      );
    }
    for (const gpuMemory of ["20", "0GiB", "1025GiB"]) {
      expect(() => service({ name: "one", gpuMemory, endpoints })).toThrow(
        'gpuMemory must be a size from 1MiB to 1024GiB, such as "20GiB"',
      );
    }
  });

  it.each([
    ["debian", "docker.io/library/debian"],
    ["acme/reader:1.2", "docker.io/acme/reader"],
    ["localhost/reader", "localhost/reader"],
    ["registry.example.com:5000/acme/team/reader", "registry.example.com:5000/acme/team/reader"],
    [`ghcr.io/acme/reader:latest@sha256:${"0".repeat(64)}`, "ghcr.io/acme/reader"],
  ])("names the container image %s", async (image, name) => {
    const exported = service({ name: "one", image, endpoints: { go: api({}, () => 1) } });
    const { manifest } = await readyService(exported, definitionOf(exported));
    expect(manifest.image).toBe(image);
    expect(parseImage(image)?.name).toBe(name);
  });

  it.each([
    ...["--help", "-x/y", "oci:/etc", "docker://debian", "/etc/passwd", "../x", "a/../b", "Debian"],
    ...[
      "a b",
      "debian:",
      "debian@sha256:0",
      "a//b",
      "registry:5000",
      "",
      "a\nb",
      "a:b:c",
      "x".repeat(600),
    ],
  ])("takes %j for no container image", (image) => {
    const made = () => service({ name: "one", image, endpoints: { go: api({}, () => 1) } });
    expect(parseImage(image)?.name).toBe(
      image === "registry:5000" ? "docker.io/library/registry" : undefined,
    );
    if (image !== "registry:5000") {
      expect(made).toThrow("which is no name of a container image");
    }
  });

  it("says how long it may take to load, from 1 s to 24 h", async () => {
    const endpoints = { go: api({}, () => 1) };
    const exported = service({ name: "one", readyTimeout: "15m", endpoints });
    const { manifest } = await readyService(exported, definitionOf(exported));
    expect(manifest.readyTimeoutMs).toBe(900_000);
    for (const readyTimeout of ["500ms", "2d"] as const) {
      expect(() => service({ name: "one", readyTimeout, endpoints })).toThrow(
        "readyTimeout must be",
      );
    }
  });

  it("of a class is that of its decorator, and is checked there", async () => {
    expect(() => service({ name: "one", place: "here" as "any" })).toThrow(
      'service "one": place must be "local", "remote" or "any"',
    );
    const definition = { name: "one", requires: { gpu: "h200" }, place: "any" } as const;
    class One {}
    Object.defineProperty(One.prototype, "go", { value: methodOf(task({ place: "local" })) });
    service(definition)(One, { kind: "class" } as ClassDecoratorContext<typeof One>);
    const { manifest } = await readyService(One, definitionOf(One));
    expect(manifest).toMatchObject({ requires: { gpu: "h200" }, place: "any" });
    expect(manifest.endpoints).toMatchObject([{ name: "go", place: "local" }]);
  });
});

describe("the name of an endpoint", () => {
  it.each(["status", "metrics", "docs.json", "api"])("is not %s", (name) => {
    const define = () => service({ name: "one", endpoints: { [name]: api({}, () => 1) } });
    expect(define).toThrow("reserved");
  });

  it.each(["1st", "_private", "with space", "a".repeat(64), "naïve", "__proto__x", ""])(
    "is not %s",
    (name) => {
      const define = () => service({ name: "one", endpoints: { [name]: api({}, () => 1) } });
      expect(define).toThrow("must begin with a letter");
    },
  );
});

describe("a decorator", () => {
  it("of the older kind is refused with the remedy", () => {
    const decorate = api({}) as unknown as (...legacy: unknown[]) => void;
    expect(() => decorate({}, "go", { value: () => 1 })).toThrow("remove experimentalDecorators");
  });
});

describe("an option that is not known", () => {
  const endpoint = (options: object) => ({ go: task(options as EndpointOptions, () => 1) });
  it.each([
    [{ name: "s", endpoints: endpoint({ retry: { max: 3 } }) }, "; did you mean retries?"],
    [{ name: "s", endpoints: endpoint({ cache: true }) }, 'endpoint "go": cache is not an option'],
    [{ name: "s", endpoints: endpoint({ time_out: 3 }) }, "time_out is not an option; did you"],
    [{ name: "s", endpoints: endpoint({ retries: { max: 1, backof: 1 } }) }, "retries.backof is"],
    [{ name: "s", endpoints: endpoint({ batch: { maxSize: 2, wait: 1 } }) }, "batch.wait is not"],
    [{ name: "s", endpoints: endpoint({ name: "other" }) }, "is named by its key in endpoints"],
    [{ name: "s", require: {}, endpoints: endpoint({}) }, "; did you mean requires?"],
  ])("is refused: %j", async (options, said) => {
    const made = async () => {
      const exported = service(options as never);
      await readyService(exported, definitionOf(exported));
    };
    await expect(made()).rejects.toThrow(said);
  });

  it.each([
    [() => file({ contenttype: "image/png" } as object), "file(): contenttype is not an option"],
    [() => file({ maxSize: 3 } as object), "file(): maxSize is not an option; did you mean maxB"],
    [() => file().array({ maximum: 3 } as object), "file().array(): maximum is not an option"],
  ])("is refused of a file: %s", (define, said) => {
    expect(define).toThrow(said);
  });

  it("is refused of a method too", () => {
    const go = methodOf(api({ outptu: z.string() } as object) as EndpointDecorator<never, unknown>);
    class Own {}
    Object.assign(Own.prototype, { go });
    const decorate = service({ name: "s" }) as unknown as (
      target: unknown,
      context: object,
    ) => void;
    expect(() => decorate(Own, { kind: "class" })).toThrow("outptu is not an option; did you mean");
  });
});

describe("a duration", () => {
  it.each([
    [1500, 1500],
    ["250ms", 250],
    ["1.5s", 1500],
    ["5m", 300_000],
    ["2h", 7_200_000],
    ["1d", 86_400_000],
    ["5 m", undefined],
    ["-1s", undefined],
    [-1, undefined],
    [Number.POSITIVE_INFINITY, undefined],
    [undefined, undefined],
  ])("%s is %s ms", (duration, milliseconds) => {
    expect(parseDuration(duration)).toBe(milliseconds);
  });
});

describe("file()", () => {
  const validate = (schema: ReturnType<typeof file>, value: unknown) =>
    schema["~standard"].validate(value) as { value?: File; issues?: { message: string }[] };

  it("takes a file of no known type for the one it names", () => {
    const checked = validate(file({ contentType: "image/png" }), new File(["x"], "x.png"));
    expect(checked.value).toMatchObject({ type: "image/png", name: "x.png" });
  });

  it("refuses more bytes than it allows", () => {
    const checked = validate(file({ maxBytes: 2 }), new Uint8Array(3));
    expect(checked.issues).toEqual([{ message: "must be at most 2 bytes, not 3" }]);
  });

  it("refuses options that make no sense", () => {
    expect(() => file({ contentType: "png" })).toThrow("contentType must be like image/png");
    expect(() => file({ maxBytes: -1 })).toThrow("maxBytes must be a whole number");
  });
});

it("an error for bad input is an invalid argument", () => {
  expect(new BadInput("no")).toMatchObject({
    code: "invalid_argument",
    message: "no",
    name: "BadInput",
  });
});

it("errors are made with new or without, and begin where they are thrown", () => {
  const bad = BadInput("no", { cause: "why" });
  expect(bad).toBeInstanceOf(BadInput);
  expect(bad).toBeInstanceOf(EndpointError);
  expect(bad).toMatchObject({ code: "invalid_argument", message: "no", cause: "why" });
  expect(bad.stack?.split("\n")[1]).toContain("definition.test.ts");
  expect(EndpointError("not_found", "gone")).toMatchObject({ code: "not_found" });
  class Worse extends BadInput {}
  expect(new Worse("no")).toBeInstanceOf(Worse);
});

it("a file inside an object of another library is refused with what to write there", async () => {
  const input = z.object({ count: z.int(), image: file() as never });
  await expect(describeOne({ input })).rejects.toThrow(
    'endpoint "go": "image" is a file() inside a schema of zod, which knows only its own: write z.file() there, or name each argument: input: { image: file(), … }',
  );
});

it("a service of functions sets up before its schemas are asked for, and calls come", async () => {
  const done: unknown[] = [];
  const setup = async (context: SetupContext) => done.push(context);
  const exported = service({ name: "one", setup, endpoints: { go: api({}, () => done.length) } });
  const context = { metrics: {} };
  await readyService(exported, definitionOf(exported), context);
  expect(done).toEqual([context]);
  const endpoints = { go: api({}, () => 1) };
  expect(() => service({ name: "one", setup: 3 as never, endpoints })).toThrow(
    'service "one": setup must be a function',
  );
  expect(() => service({ name: "one", setup } as never)).toThrow(
    'service "one": a class has a method for it, setup()',
  );
});

describe("mounted servers", () => {
  const app = () => new Response("hello");
  const talking = async (_ctx: SocketContext): Promise<void> => {};
  const mountedAt = (mounts: object) =>
    service({ name: "shop", mounts: mounts as never, endpoints: { go: api({}, () => 1) } });
  const classWith = (options: object, ...decorators: readonly SocketDecorator[]) => {
    class Talks {
      readonly word = "hello";

      async live(ctx: SocketContext): Promise<void> {
        await ctx.socket.send(this.word);
      }
    }
    const about = { kind: "method", name: "live", static: false, private: false };
    for (const decorator of decorators) {
      decorator(Talks.prototype.live, about as ClassMethodDecoratorContext<unknown>);
    }
    service({ name: "shop", mounts: { "/ui": { app } }, ...options })(Talks, {
      kind: "class",
    } as ClassDecoratorContext<typeof Talks>);
    return Talks;
  };
  const mounted = async (mounts: object) => {
    const exported = service({ name: "shop", mounts: mounts as never, endpoints: {} });
    return (await readyService(exported, definitionOf(exported))).manifest.mounts;
  };

  it("have their options in the manifest, with defaults, and a service may have them alone", async () => {
    expect(
      await mounted({
        "/": { app, metrics: "/metrics?all", openapi: "/doc" },
        "/ui": { app: { fetch: app }, timeout: "5m", openapi: false },
      }),
    ).toEqual([
      { path: "/", timeoutMs: 60_000, concurrency: 100, metrics: "/metrics?all", openapi: "/doc" },
      { path: "/ui", timeoutMs: 300_000, concurrency: 100, openapi: "" },
    ]);
    const plain = service({ name: "plain", endpoints: { go: api({}, () => 1) } });
    expect((await readyService(plain, definitionOf(plain))).manifest).not.toHaveProperty("mounts");
  });

  it("may have their requests queued, with the options of tasks", async () => {
    const retries = { max: 3, backoff: "2s" };
    const options = { timeout: "1h", retention: "7d", retries, queueLimit: 5, priority: 2 };
    const queued = async (queue: unknown) => (await mounted({ "/": { app, queue } }))?.[0]?.queue;
    expect(await queued(true)).toEqual({
      ...{ timeoutMs: 600_000, headers: [], retentionMs: 86_400_000, queueLimit: 10_000 },
      ...{ priority: 0, retries: { max: 0, backoffMs: 1_000 } },
    });
    expect(await queued({ ...options, headers: ["X-Tenant"] })).toEqual({
      ...{ timeoutMs: 3_600_000, headers: ["x-tenant"], retentionMs: 604_800_000, queueLimit: 5 },
      ...{ priority: 2, retries: { max: 3, backoffMs: 2_000 } },
    });
    expect(await queued(false)).toBeUndefined();
  });

  it("may be programs, which may start processes", async () => {
    const manifestOf = async (processes?: number) => {
      const exported = service({
        name: "llm",
        mounts: { "/v1": { command: ["./serve", "{port}"], health: "/health", timeout: "5m" } },
        ...(processes !== undefined && { processes }),
        endpoints: {},
      });
      return (await readyService(exported, definitionOf(exported))).manifest;
    };
    expect(await manifestOf()).toMatchObject({
      mounts: [{ path: "/v1", timeoutMs: 300_000, concurrency: 100 }],
      processes: 64,
    });
    expect(await manifestOf(3)).toMatchObject({ processes: 3 });
  });

  it("may be functions with WebSockets, by their paths or as methods", async () => {
    expect(await mounted({ "/live": socket(talking) })).toEqual([
      { path: "/live", timeoutMs: 60_000, concurrency: 100, openapi: "" },
    ]);
    const route = "/v1/live";
    const Talks = classWith({}, socket({ route, concurrency: 1_000, maxMessage: "4MiB" }));
    const { manifest, mounts } = await readyService(Talks, definitionOf(Talks));
    expect(manifest.mounts?.map(({ path, concurrency }) => [path, concurrency])).toEqual([
      ["/ui", 100],
      ["/v1/live", 1_000],
    ]);
    const { serves } = mounts[1] as ServiceMount;
    const { run, maxMessageBytes } = (serves as { readonly socket: ServedSocket }).socket;
    expect(maxMessageBytes).toBe(4 * 1024 ** 2);
    const sent: unknown[] = [];
    await run?.({ socket: { send: async (said: unknown) => sent.push(said) } } as never);
    expect(sent).toEqual(["hello"]);
  });

  it.each<[made: () => unknown, said: string]>([
    [() => socket("x" as never), "the first parameter must be options or a function"],
    [() => socket({}, "x" as never), "the second parameter must be a function"],
    [() => (socket as (...given: unknown[]) => unknown)(talking, {}), "it is @socket()"],
    [() => mountedAt({ "/": socket() }), "or socket(function)"],
    [() => mountedAt({ "/": socket({ route: "/a" } as object, talking) }), "remove route"],
    [() => mountedAt({ "/": socket({ max: 1 } as object, talking) }), "max is not an option"],
    [() => mountedAt({ "/": socket({ maxMessage: "17MiB" }, talking) }), "from 1KiB to 16MiB"],
    [() => mountedAt({ "/": socket({ concurrency: 0 }, talking) }), "concurrency must be a whole"],
    [() => mountedAt({ "/metrics": socket(talking) }), "which is for the server"],
    [() => mountedAt({ "/go": socket(talking) }), "which is for the endpoint of this name"],
    [() => classWith({}, socket({ route: "/ui" })), "two servers at /ui"],
    [() => classWith({}, socket({ route: "ui" })), "@socket live: its path must be"],
    [() => classWith({}, socket(), api({}) as unknown as SocketDecorator), "one or the other"],
    [() => classWith({}, api({}) as unknown as SocketDecorator, socket()), "one or the other"],
  ])("refuse a socket that could not be reached or not run: %o", (made, said) => {
    expect(made).toThrow(said);
  });

  it.each([
    [{ "/": { app, queue: "yes" } }, "mount /: queue must be true, or an object"],
    [{ "/": { app, queue: { retry: 1 } } }, "queue.retry is not an option; did you mean retries?"],
    [{ "/": { app, queue: { retries: 3 } } }, "retries must be an object"],
    [{ "/": { app, queue: { headers: ["a b"] } } }, "headers must be a list"],
    [{ [`/${"a".repeat(63)}`]: { app, queue: true } }, "must have at most 63 characters"],
    [{ ui: { app } }, 'mount ui: its path must be "/"'],
    [{ "/ui/": { app } }, "mount /ui/: its path must be"],
    [{ "/": app }, "must be { app }"],
    [{ "/": { app: {} } }, "app must be a function"],
    [{ "/": { app, timout: 1 } }, "timout"],
    [{ "/": { app, timeout: "2d" } }, "timeout must be a duration from 1ms to"],
    [{ "/": { app, metrics: "metrics" } }, "metrics must be a path"],
    [{ "/": { app, metrics: "/a b" } }, "metrics must be a path"],
    [{ "/": { app, metrics: `/${"x".repeat(255)}` } }, "metrics must be a path"],
    [{ "/": { app, openapi: "doc" } }, "openapi must be a path below"],
    [{ "/": { app, openapi: true } }, "openapi must be a path below"],
    [{ "/": { app, concurrency: 0 } }, "concurrency must be a whole number from 1 to"],
    [{ "/": { app, concurrencyPerKey: 0 } }, "concurrencyPerKey must be a whole number from 1 to"],
    [{ "/": { app, ratePerKey: "many" } }, "ratePerKey must be a number from 1 to 10000"],
    [{ "/": { app, fair: true } }, "fair"],
    [[app], "mount 0: its path must be"],
    [{ "/": { command: "vllm serve" } }, "command must be a list of texts"],
    [{ "/": { command: [] } }, "command must be a list of texts"],
    [{ "/": { command: [""] } }, "command must be a list of texts"],
    [{ "/": { command: ["a\0b"] } }, "without NUL"],
    [{ "/": { command: ["a", "x".repeat(10_000)] } }, "of at most 8192 bytes"],
    [{ "/": { command: ["a"], port: 0 } }, "port must be a whole number from 1 to 65535"],
    [{ "/": { command: ["a"], port: 70_000 } }, "port must be a whole number from 1 to 65535"],
    [{ "/": { command: ["a"], health: "well" } }, 'health must be a path such as "/health"'],
    [{ "/": { command: ["a"], app } }, "app"],
  ])("are refused by name where they are wrong: %o", async (mounts, said) => {
    await expect(mounted(mounts)).rejects.toThrow(said);
  });
});
