/** Nodes whose disk is full, on a small file system that each has in a mount namespace of its own. */
import { spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import {
  closeSync,
  mkdirSync,
  openSync,
  rmSync,
  symlinkSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { leftOut } from "../../needed.ts";
import { post, submit } from "../cli/calling.ts";
import { Person } from "../cli/person.ts";
import { Program } from "../cli/program.ts";
import { ROOT } from "../clients/python-environment.ts";
import { until } from "../hosting/world.ts";
import { Folder } from "../start/platform.ts";

const SIZE_MIB = 24;
const WEIGHTS_MIB = 16;
/** A disk with a model is to have so much left. */
const LEFT_MIB = 512;

const inNamespace = (sizeMib: number): string[] => {
  const mount = `mount -t tmpfs -o size=${sizeMib}m tmpfs "$0" && exec "$@"`;
  return ["unshare", "--map-root-user", "--mount", "sh", "-c", mount];
};

const [unshare = "", ...flags] = inNamespace(SIZE_MIB).slice(0, 3);
const skipped = leftOut(
  spawnSync(unshare, [...flags, "true"]).status === 0
    ? undefined
    : "a process may not mount file systems in a namespace of its own here",
);

/** Runs a program whose folder `disk` is small. */
function onSmallDisk(folder: Folder): { readonly disk: string; readonly within: string[] } {
  const disk = join(folder.path, "disk");
  mkdirSync(disk);
  return { disk, within: [...inNamespace(SIZE_MIB), disk] };
}

/** Fills the disk as the program sees it; the file that does. */
function fill({ pid }: Program, disk: string): string {
  const path = join(`/proc/${pid}/root`, disk, "filler");
  const file = openSync(path, "w");
  try {
    // A page at the end, so that not a byte is left.
    for (const bytes of [1_048_576, 4_096]) {
      const chunk = Buffer.alloc(bytes);
      try {
        for (;;) {
          writeSync(file, chunk);
        }
      } catch (err) {
        expect(err).toMatchObject({ code: "ENOSPC" });
      }
    }
  } finally {
    closeSync(file);
  }
  return path;
}

const ready = async (url: string) => {
  const res = await fetch(`${url}/readyz`);
  return { status: res.status, text: await res.text() };
};

const FULL = "the disk of the database is full";

describe.skipIf(skipped)(`a full disk${skipped}`, () => {
  it("is called so to callers and in readiness of a served service, which goes on when there is room", async () => {
    using folder = new Folder();
    const { disk, within } = onSmallDisk(folder);
    const service = join(import.meta.dirname, "../hosting/services/echo.ts");
    const args = [service, "--workers", "1", "--database", join(disk, "tasks.db")];
    const { program, url } = await Program.serve(args, { within });
    await using _running = program;
    const before = await submit(url, "work", { text: "before" });
    const filler = fill(program, disk);
    const refused = await until(
      () => post(`${url}/work/submit`, { text: "x".repeat(10_000) }),
      ({ status }) => status !== 202,
    );
    expect(refused.status).toBe(503);
    expect(refused.body).toContain(FULL);
    expect(await ready(url)).toMatchObject({ status: 503, text: expect.stringContaining(FULL) });
    expect((await ready(url)).text).not.toContain("NO_WORKER");
    rmSync(filler);
    await until(
      () => ready(url),
      ({ status }) => status === 200,
    );
    const after = await submit(url, "work", { text: "after" });
    for (const [id, text] of [
      [before, "before"],
      [after, "after"],
    ] as const) {
      const got = await fetch(`${url}/work/get?task_id=${id}&wait=20`);
      expect(await got.text()).toBe(`one ${text}`);
    }
    expect((await program.stop()).code).toBe(0);
  });

  it("is called so by a platform", async () => {
    using folder = new Folder();
    const { disk, within } = onSmallDisk(folder);
    const program = new Program(["start", "--port", "0", "--data", join(disk, "data")], { within });
    await using _running = program;
    const [, address = ""] = await program.says("stdout", / runs on (http:\/\/\S+)\n/);
    const url = address.replace("localhost", "127.0.0.1");
    await until(
      () => ready(url),
      ({ status }) => status === 200,
    );
    const { cookie, send } = await administrator(program, url);
    const token = { access: ["developer_operations"], expires_at: "2100-01-01T00:00:00Z" };
    const create = (name: string) => send("tokens", { name, ...token });
    const filler = fill(program, disk);
    let made = 0;
    const refused = await until(
      () => create(`before ${made++}`),
      ({ status }) => status !== 200,
    );
    expect(refused.status).toBe(503);
    expect(await refused.text()).toContain(FULL);
    expect(await ready(url)).toMatchObject({ status: 503, text: expect.stringContaining(FULL) });
    expect((await ready(url)).text).not.toContain("NO_WORKER");
    rmSync(filler);
    await until(
      () => ready(url),
      ({ status }) => status === 200,
    );
    expect((await create("after")).status).toBe(200);
    const listed = await fetch(`${url}/api/v1/tokens?page_size=1000`, { headers: { cookie } });
    expect(((await listed.json()) as { tokens: unknown[] }).tokens).toHaveLength(made);
    expect((await program.stop()).code).toBe(0);
  });

  it("stops a model that is brought there, which goes on when there is room", async () => {
    using folder = new Folder();
    using ada = new Person();
    const models = join(folder.data, "models");
    mkdirSync(models, { recursive: true });
    const program = new Program(["start", "--port", "0", "--data", folder.data], {
      within: [...inNamespace(LEFT_MIB + SIZE_MIB), models],
    });
    await using _running = program;
    const [, address = ""] = await program.says("stdout", / runs on (http:\/\/\S+)\n/);
    const url = address.replace("localhost", "127.0.0.1");
    const { send } = await administrator(program, url);
    const token = { access: ["developer_operations"], expires_at: "2100-01-01T00:00:00Z" };
    const made = await send("tokens", { name: "ada", ...token });
    const { value } = (await made.json()) as { readonly value: string };
    await ada.run(["cloud", "login", "--endpoint", url, "--api-token", "-"], { input: value });
    const service = join(folder.path, "service");
    mkdirSync(join(service, "weights"), { recursive: true });
    writeFileSync(join(service, "weights/model.safetensors"), randomBytes(WEIGHTS_MIB * 1024 ** 2));
    writeFileSync(
      join(service, "service.ts"),
      `import { statSync } from "node:fs";
      import { api, modelPath, service } from "tessera-platform";
      export default service({ name: "weighing", models: { it: "model://weights@1" }, endpoints: {
        weigh: api({}, () => statSync(modelPath("it") + "/model.safetensors").size),
      } });`,
    );
    symlinkSync(join(ROOT, "node_modules"), join(service, "node_modules"));
    expect(await ada.run(["model", "push", join(service, "weights")])).toMatchObject({ code: 0 });
    const filler = join(`/proc/${program.pid}/root`, models, "filler");
    writeFileSync(filler, Buffer.alloc((SIZE_MIB - WEIGHTS_MIB + 1) * 1024 ** 2));
    await ada.run(["deploy", join(service, "service.ts"), "--no-wait"]);
    const status = async () => (await ada.run(["deployment", "get", "weighing"])).stdout;
    await until(status, (text) =>
      /model it cannot be brought here: the disk has no room: it takes 16 MiB, and 527 MiB/.test(
        text,
      ),
    );
    rmSync(filler);
    await until(status, (text) => /^status +ready/m.test(text));
    const called = await ada.run(["call", "weigh", "--deployment", "weighing"]);
    expect(called).toMatchObject({ stdout: `${WEIGHTS_MIB * 1024 ** 2}\n` });
  }, 120_000);
});

/** Sets the platform up; what asks it as its administrator. */
async function administrator(program: Program, url: string) {
  const send = (path: string, body: object, cookie = "") =>
    fetch(`${url}/api/v1/${path}`, {
      method: "POST",
      headers: { "content-type": "application/json", cookie },
      body: JSON.stringify(body),
    });
  const setUp = await send("auth:setUp", {
    setup_code: /setup#code=(\w+)/.exec(program.stdout)?.[1],
    organization: "acme",
    email: "ada@example.com",
    password: "a long enough password",
  });
  const cookie = setUp.headers.getSetCookie()[0]?.split(";")[0] ?? "";
  return { cookie, send: (path: string, body: object) => send(path, body, cookie) };
}
