/** What a service in Python cannot do to the node that hosts it; the kernel's sandbox alone holds it. */
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import net, { type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { launchersFor } from "../../../src/pool/launchers.ts";
import { leftOut } from "../../needed.ts";
import { kernelSandbox, skipped as noSandbox } from "../../pool/sandbox/available.ts";
import { emptyImage } from "../../pool/sandbox/empty-image.ts";
import { pythonMissing } from "../clients/python-environment.ts";
import type { Hosting, RevisionSettings } from "../deployments/hosting.ts";
import { fixture, hostedPython } from "./hosted.ts";

const skipped = noSandbox || leftOut(pythonMissing);
const SECRET = "a secret of the node";
const MEBIBYTE = 1024 ** 2;

function hostile(settings: RevisionSettings = {}): Promise<Hosting> {
  return hostedPython(fixture("hostile.py"), launchersFor(kernelSandbox()), settings);
}

describe.skipIf(skipped).each([
  ["with the machine's libraries", false],
  ["in an image", true],
])(`a hostile service in Python %s${skipped}`, (_, isInImage) => {
  let folder: string;
  let hosting: Hosting;
  let settings: RevisionSettings = {};
  const servers: net.Server[] = [];
  let port: number;
  beforeAll(async () => {
    folder = realpathSync(mkdtempSync(join(tmpdir(), "tessera-data-")));
    mkdirSync(join(folder, "artifacts"));
    writeFileSync(join(folder, "keys.json"), SECRET);
    process.env.TESSERA_TEST_SECRET = SECRET;
    for (const address of [0, join(folder, "socket"), "\0tessera-python-test"]) {
      const server = net.createServer((socket) => socket.destroy());
      servers.push(server.listen(address));
      await once(server, "listening");
    }
    [port = 0] = servers.map((server) => (server.address() as AddressInfo).port);
    settings = isInImage ? { image: await emptyImage(join(folder, "image")) } : {};
    hosting = await hostile(settings);
  }, 300_000);
  afterAll(async () => {
    delete process.env.TESSERA_TEST_SECRET;
    await hosting?.[Symbol.asyncDispose]();
    for (const server of servers) {
      server.close();
    }
    rmSync(folder, { recursive: true, force: true });
  });

  const own = String(process.pid);
  const attempt = async (what: string, path = "", number = 0) => {
    const place = path === "" || path.startsWith("/") ? path : join(folder, path);
    return hosting.call("attempt", { what, path: place, number });
  };

  it.each([
    ["read", "keys.json", "ENOENT"],
    ["read", `/proc/${own}/environ`, "ENOENT"],
    ["read", "/etc/passwd", "ENOENT"],
    ["read by a way round", "keys.json", "ENOENT"],
    ["read through a link", "keys.json", "ENOENT"],
    ["read through a hard link", "keys.json", "ENOENT"],
    ["read through the first process", "keys.json", /EACCES|EPERM|ENOENT/],
    ["list", ".", "ENOENT"],
    ["list", "/home", "ENOENT"],
    ["write", "written", "ENOENT"],
    ["write", "/written", "EROFS"],
    ["write", "/dev/written", "EROFS"],
    ["delete", "keys.json", "ENOENT"],
    ["move", "keys.json", "ENOENT"],
    ["write its own code", "", "EROFS"],
    ["add to its own code", "", "EROFS"],
    ["change the host", "", "EROFS"],
    ["change its packages", "", "EROFS"],
    ["change the interpreter", "", /EROFS|EPERM/],
    ["write a device", "", "EPERM"],
    ["reach the memory of the machine", "", "ENOENT"],
    ["make a folder at the root", "", "EROFS"],
    ["connect to a socket of the machine", "socket", "ENOENT"],
    ["connect to a socket of the machine", "/var/run/docker.sock", "ENOENT"],
    ["reach the metadata service", "", "ENETUNREACH"],
    ["reach the internet", "", "ENETUNREACH"],
    ["send a datagram", "", "ENETUNREACH"],
    ["read packets", "", "EAFNOSUPPORT"],
    ["send raw packets", "", "EPROTONOSUPPORT"],
    ["list", "/etc/ssl/private", "ENOENT"],
    ["reach virtual machines", "", "EAFNOSUPPORT"],
    ["run a command", "", "EPERM"],
    ["run a shell", "", "ENOENT"],
    ["fork", "", "EPERM"],
    ["spawn", "", /EPERM|ENOSYS/],
    ["become root", "", "EINVAL"],
    ["set the clock", "", "EPERM"],
    ["set the host's name", "", "EPERM"],
    ["change the kernel", "", /EROFS|EACCES/],
    ["press a key of the kernel", "", /EROFS|EACCES|ENOENT/],
    ["write to descriptor 3", "", /EBADF|EINVAL/],
  ])("cannot %s (%s)", async (what, path, refused) => {
    const matching = typeof refused === "string" ? refused : expect.stringMatching(refused);
    expect(await attempt(what, path)).toEqual({ refused: matching });
    expect(readFileSync(join(folder, "keys.json"), "utf8")).toBe(SECRET);
  });

  it.skipIf(process.arch !== "x64").each([
    ["fork by the kernel", "EPERM"],
    ["vfork by the kernel", "EPERM"],
    ["clone by the kernel", "EPERM"],
    ["clone anew by the kernel", "ENOSYS"],
    ["trace", "EPERM"],
    ["read the memory of others", "EPERM"],
    ["take a descriptor of others", "ESRCH"],
    ["unshare", "EPERM"],
    ["mount", "EPERM"],
    ["change its root", "EPERM"],
    ["load a kernel module", "EPERM"],
    ["use io_uring", "EPERM"],
    ["use bpf", "EPERM"],
    ["watch performance", "EPERM"],
    ["use keyrings", "EPERM"],
  ])("cannot %s by a system call", async (what, refused) => {
    expect(await attempt(what, "", process.pid)).toEqual({ refused });
  });

  it.each([
    ["connect to its node", () => port, "ECONNREFUSED"],
    ["connect to its node by IPv6", () => port, /ECONNREFUSED|EADDRNOTAVAIL|EAFNOSUPPORT/],
    ["signal its node", () => process.pid, "ESRCH"],
    ["slow its node down", () => process.pid, "ESRCH"],
    ["limit its node", () => process.pid, /ESRCH|EPERM/],
  ])("cannot %s", async (what, number, refused) => {
    const matching = typeof refused === "string" ? refused : expect.stringMatching(refused);
    expect(await attempt(what, "", number())).toEqual({ refused: matching });
  });

  it("cannot connect to an abstract socket", async () => {
    const answer = await hosting.call("attempt", {
      what: "connect to an abstract socket",
      path: "tessera-python-test",
    });
    expect(answer).toEqual({ refused: "ECONNREFUSED" });
  });

  it("sees its own processes only, and nothing of the node's environment in them", async () => {
    expect(await hosting.call("processes")).toEqual(["1", "2"]);
    const readable = (await hosting.call("everything_readable")) as string;
    expect(readable).toContain("TMPDIR");
    expect(readable).not.toContain(SECRET);
    expect(await hosting.call("kill_all")).toBe("still here");
  });

  it("cannot give a file of the machine as its result", async () => {
    await expect(
      hosting.call("linked_result", { path: join(folder, "keys.json") }),
    ).rejects.toThrow("the result that the worker named could not be read");
  });

  const LIMITS = { memoryBytes: 256 * MEBIBYTE, diskBytes: 50 * MEBIBYTE };
  it("is ended with a reason when it exhausts what the machine has, and never forks", async () => {
    await using limited = await hostile({ ...LIMITS, ...settings });
    for (const [what, reason] of [
      ["threads", /out of threads: it started \d+, and at most 4000 may be/],
      ["memory", /out of memory: it used \d+ MiB of 256 MiB/],
      ["disk", /out of disk: it stored \d+ MiB of 50 MiB/],
      ["the channel", /a message in a format that the protocol does not have/],
      ["a forged result", /a result of call 999999/],
      ["processes", /it may not fork/],
    ] as const) {
      const taskId = await limited.submit("exhaust", { what });
      const failure = async () => {
        const { returned, failure } = await limited.hosted.tasks.get({ taskId });
        return (returned[0]?.failure ?? failure)?.message;
      };
      await expect.poll(failure, { message: what }).toMatch(reason);
      await limited.hosted.queue.cancel({ taskId }, true).catch(() => {
        // It has ended.
      });
    }
    await expect.poll(() => limited.call("kill_all")).toBe("still here");
  });
});
