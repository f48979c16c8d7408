import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { RevisionFailed } from "../../../src/deployments/rollout.ts";
import { Gate } from "../serve/gate.ts";
import { Hosting, type RevisionSettings, source } from "./hosting.ts";

let hosting: Hosting;
afterEach(() => hosting[Symbol.asyncDispose]());

const SAYS = (text: string) => source(`say: api({}, () => ${JSON.stringify(text)})`);

async function failureOf(code: string, settings: RevisionSettings = {}): Promise<RevisionFailed> {
  const err: unknown = await hosting.deploy(code, settings).catch((thrown: unknown) => thrown);
  expect(err).toBeInstanceOf(RevisionFailed);
  return err as RevisionFailed;
}

describe("a deployment", () => {
  it("is called as its record says, whatever its service is called", async () => {
    hosting = await Hosting.start();
    await hosting.deploy(SAYS("one"));
    expect(hosting.hosted.name).toBe("acme/worker");
    expect(hosting.hosted.manifest.name).toBe("anything");
    expect(() => hosting.hosted.endpoint("other")).toThrow(/deployment acme\/worker has no/);
  });

  it("gives its workers their variables and nothing else", async () => {
    hosting = await Hosting.start();
    await hosting.deploy(source("env: api({}, () => ({ ...process.env }))"), { env: { KEY: "k" } });
    expect(Object.keys((await hosting.call("env")) as object).sort()).toEqual([
      // That they have no GPU.
      "CUDA_VISIBLE_DEVICES",
      "KEY",
      "LANG",
      "TMPDIR",
    ]);
  });

  it.each(["NODE_OPTIONS", "LD_PRELOAD", "OPENSSL_CONF", "TMPDIR", "A=B"])(
    "refuses a variable that reaches beyond its workers: %s",
    async (name) => {
      hosting = await Hosting.start();
      const { message } = await failureOf(SAYS("x"), { env: { [name]: "--allow-child-process" } });
      expect(message).toContain(`variable "${name}"`);
    },
  );

  it("takes native code only where the operator allows it, and says so", async () => {
    hosting = await Hosting.start();
    expect((await failureOf(SAYS("x"), { platform: "linux-x64-glibc" })).message).toMatch(
      /native code \(for linux-x64-glibc\).*--native-code allow/,
    );
    await hosting[Symbol.asyncDispose]();
    hosting = await Hosting.start({ allowNativeCode: true });
    await hosting.deploy(SAYS("native"), { platform: "linux-x64-glibc" });
    expect(await hosting.call("say")).toBe("native");
  });
});

it("what functions log and throw names their worker and revision", async () => {
  const lines: Record<string, unknown>[] = [];
  const info = (fields: object, message: string): void => void lines.push({ ...fields, message });
  hosting = await Hosting.start({ log: { info, debug() {}, warn: info, error: info } });
  const logs = "async (_, ctx) => { ctx.log.info('said'); throw new Error('thrown'); }";
  await hosting.deploy(source(`call: api({}, ${logs}), work: task({}, ${logs})`));
  await expect(hosting.call("call")).rejects.toThrow("thrown");
  await hosting.ended(await hosting.submit("work"));
  const from = { revision: 1, worker: expect.any(String) };
  for (const message of ["said", "a function failed", "a task's function failed"]) {
    expect(lines).toContainEqual(expect.objectContaining({ ...from, message }));
  }
  expect(lines.filter(({ message }) => message === "said")).toHaveLength(2);
});

describe("a revision that is not wanted any more", () => {
  it("is given up while it starts, and has not failed", async () => {
    const started = Promise.withResolvers<void>();
    const onOutput = (line: string): void => void (line === "hangs" && started.resolve());
    hosting = await Hosting.start({ onOutput });
    await hosting.deploy(SAYS("one"));
    const abort = new AbortController();
    const hangs = source(
      "say: api({}, () => 2)",
      'console.log("hangs"); await new Promise(() => {})',
    );
    const deploy = hosting.hosted.deploy(await hosting.revision(hangs), abort.signal);
    await Promise.all([
      expect(deploy).rejects.toThrow("another one"),
      started.promise.then(() => abort.abort(new Error("another one"))),
    ]);
    expect(hosting.hosted.status).toMatchObject({ state: "ready", revision: 1, failed: undefined });
    expect(await hosting.call("say")).toBe("one");
  });
});

describe("a revision that cannot start", () => {
  it.each([
    ["throws at import", 'console.log("so far"); throw new Error("no config")', /no config/],
    ["exits at import", 'console.log("so far"); process.exit(3)', /exited with code 3/],
    [
      "never gets ready",
      'console.log("so far"); await new Promise(() => {})',
      /not ready after 2 s/,
    ],
    ["loops at import", 'console.log("so far"); for (;;) {}', /not ready after 2 s/],
  ])("leaves the one before serving when it %s", async (_, before, reason) => {
    // What ends by itself waits for no timeout, so that none comes first where a start takes long.
    const waits = reason.source.startsWith("not ready");
    hosting = await Hosting.start(waits ? { readyTimeoutMs: 2_000 } : {});
    await hosting.deploy(SAYS("one"));
    const { message, lines } = await failureOf(source("say: api({}, () => 2)", before));
    expect(message).toMatch(reason);
    expect(lines).toContain("so far");
    expect(await hosting.call("say")).toBe("one");
    expect(hosting.hosted.ready).toBe(true);
    expect(hosting.hosted.status).toMatchObject({
      state: "failed",
      reason: expect.stringMatching(/^revision 2 could not start: .*revision 1 goes on serving$/s),
      revision: 1,
      failed: { revision: 2 },
      lines: expect.arrayContaining(["so far"]),
    });
    await hosting.deploy(SAYS("three"));
    expect(await hosting.call("say")).toBe("three");
    expect(hosting.hosted.status).toMatchObject({ state: "ready", revision: 3, lines: [] });
  });

  it("has of what it wrote no more than the end told", async () => {
    hosting = await Hosting.start();
    const before = 'for (let i = 0; i < 500; i++) console.log("line " + i); throw new Error("no")';
    const { lines } = await failureOf(source("say: api({}, () => 2)", before));
    expect(lines).toHaveLength(50);
    expect(lines.at(-1)).toBe("line 499");
    expect(hosting.hosted.status).toMatchObject({ state: "failed", revision: undefined });
  });
});

it("workers that end again and again make a deployment degraded, until another revision", async () => {
  hosting = await Hosting.start();
  await hosting.deploy(source("say: api({}, () => 1)", "setTimeout(() => process.exit(7), 50);"));
  await expect.poll(() => hosting.hosted.status.state).toBe("degraded");
  await expect
    .poll(() => hosting.hosted.status.reason)
    .toBe("workers end again and again: it exited with code 7");
  await hosting.deploy(SAYS("two"));
  expect(hosting.hosted.status).toMatchObject({ state: "ready", reason: "" });
});

describe("a task", () => {
  let gate: Gate;
  beforeEach(async () => {
    gate = await Gate.build();
  });
  afterEach(() => gate[Symbol.asyncDispose]());

  /** Runs a task of the endpoint until the gate lets it go on, so that others wait behind it. */
  async function occupy(endpoint: string, values: object = {}) {
    const taskId = await hosting.submit(endpoint, { ...values, url: gate.url });
    return { taskId, arrival: await gate.arrival() };
  }

  const WAIT = "async (url: string) => { if (url) await (await fetch(url)).text(); }";
  const URL_ARGUMENT = 'url: z.string().default("")';

  it("finishes on its revision when it runs, and runs on the new one when it waits", async () => {
    hosting = await Hosting.start();
    const work = (text: string) =>
      source(
        `work: task({ input: { ${URL_ARGUMENT} } }, async ({ url }) => { await wait(url); return "${text}"; })`,
        `const wait = ${WAIT};`,
      );
    await hosting.deploy(work("one"));
    const first = await occupy("work");
    const second = await hosting.submit("work");
    await hosting.deploy(work("two"));
    first.arrival.open("");
    expect(await hosting.ended(first.taskId)).toMatchObject({ value: "one" });
    expect(await hosting.ended(second)).toMatchObject({ value: "two" });
  });

  it("that waits fails when its endpoint is gone, is an api, or its arguments no longer fit", async () => {
    hosting = await Hosting.start();
    const blocks = `task({ input: { ${URL_ARGUMENT} } }, ({ url }) => wait(url))`;
    await hosting.deploy(
      source(
        `work: task({ input: { n: z.number(), ${URL_ARGUMENT} } }, async ({ n, url }) => { await wait(url); return n; }), ` +
          `gone: ${blocks}, turned: ${blocks}`,
        `const wait = ${WAIT};`,
      ),
    );
    const blocking = [await occupy("work", { n: 1 }), await occupy("gone"), await occupy("turned")];
    const ids = {
      fits: await hosting.submit("work", { n: 1 }),
      misfits: await hosting.submit("work", { n: 20 }),
      gone: await hosting.submit("gone"),
      turned: await hosting.submit("turned"),
    };
    await hosting.deploy(
      source(
        "work: task({ input: { n: z.number().max(9) } }, ({ n }) => n), turned: api({}, () => 1)",
      ),
    );
    expect(await hosting.ended(ids.fits)).toMatchObject({ status: "success", value: 1 });
    expect((await hosting.ended(ids.misfits)).failure).toMatchObject({
      reason: "error",
      code: "failed_precondition",
      message: expect.stringMatching(
        /^the arguments do not fit endpoint work of revision 2: argument "n" /,
      ),
      violations: [{ field: "n" }],
    });
    expect((await hosting.ended(ids.gone)).failure).toMatchObject({
      code: "failed_precondition",
      message: "revision 2 has no endpoint gone",
    });
    expect((await hosting.ended(ids.turned)).failure).toMatchObject({
      message: "endpoint turned is an api in revision 2 and runs no tasks",
    });
    for (const { taskId, arrival } of blocking) {
      arrival.open("");
      expect(await hosting.ended(taskId)).toMatchObject({ status: "success" });
    }
  });

  it("waits while a revision that cannot run it stands in for the newest", async () => {
    hosting = await Hosting.start();
    const first = `made: task({ input: { ${URL_ARGUMENT} } }, ({ url }) => wait(url))`;
    await hosting.deploy(source(first, `const wait = ${WAIT};`));
    const { arrival } = await occupy("made");
    const made = await hosting.submit("made");
    const before = await hosting.revision(source("say: api({}, () => 1)"));
    const revision = before.revision && { ...before.revision, standsIn: true };
    await hosting.hosted.deploy({ ...before, ...(revision && { revision }) });
    arrival.open("");
    expect(await hosting.ended(made, 2_000)).toMatchObject({ status: "unfinished" });
    await hosting.deploy(source("made: task({}, () => 2)"));
    expect(await hosting.ended(made)).toMatchObject({ status: "success" });
  });
});
