/** Machines as processes of this host, started by its own shell. */
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { type Host, ShellHosts } from "../../../src/agent/launcher/hosts.ts";
import type { ClusterMachine } from "../../../src/agent/launcher/machines.ts";
import { quoted, runner } from "../../../src/agent/launcher/run.ts";

/** A worker finishes its calls when it is told to end; this one ends when the test lets it. */
const WORKER = `
trap 'echo told >> said' TERM
echo "$TESSERA_WORKER_TOKEN" > said
until [ -e may-end ]; do read -t 0.05 never <> fifo || :; done`;

const DEPLOYMENT = "019aa51c-0000-7000-8000-00000000000d";
const POLL = { timeout: 30_000 };

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "tessera-hosts-"));
});
const started: { readonly hosts: ShellHosts; readonly id: string }[] = [];
afterEach(async () => {
  for (const { hosts, id } of started.splice(0)) {
    await hosts.list().catch(() => []);
    await hosts.stop({ id, deploymentId: DEPLOYMENT }, { force: true });
  }
  rmSync(folder, { recursive: true, force: true });
});

const here = (more: Partial<Host> = {}): Host => ({
  name: "here",
  shell: ["sh"],
  maxMachines: 10,
  ...more,
});

function hostsOf(script = WORKER, hosts: readonly Host[] = [here()]): ShellHosts {
  return new ShellHosts({
    hosts,
    folder: quoted(join(folder, "the machines")),
    command: ["bash", "-c", `[ -e fifo ] || mkfifo fifo; ${script}`],
    run: runner(process.env),
    now: Date.now,
  });
}

async function start(hosts: ShellHosts, env: Record<string, string> = {}): Promise<string> {
  const id = crypto.randomUUID();
  started.push({ hosts, id });
  await hosts.start({ id, deploymentId: DEPLOYMENT, env, endsAtMs: Date.now() + 60_000 });
  return id;
}

const of = (id: string) => ({ id, deploymentId: DEPLOYMENT });
const pathOf = (id: string, name: string) =>
  join(folder, "the machines", `${DEPLOYMENT}.${id}`, name);
const said = (id: string) => readFileSync(pathOf(id, "said"), "utf8").split("\n");

async function found(hosts: ShellHosts, id: string): Promise<ClusterMachine | undefined> {
  return (await hosts.list()).find((machine) => machine.id === id);
}

it("starts a process with the variables of its machine, and lists it", async () => {
  const hosts = hostsOf();
  const token = 'it\'s $(a) "token"';
  const id = await start(hosts, { TESSERA_WORKER_TOKEN: token });
  expect(await found(hosts, id)).toMatchObject({ ...of(id), isOver: false, isWaiting: false });
  await expect.poll(() => said(id), POLL).toContain(token);
});

it("tells a process once to end, lets it finish, and removes it when it has", async () => {
  const hosts = hostsOf();
  const id = await start(hosts);
  await expect.poll(() => said(id), POLL).toHaveLength(2);
  await hosts.stop(of(id));
  await hosts.stop(of(id));
  await expect.poll(() => said(id), POLL).toContain("told");
  expect((await found(hosts, id))?.isOver).toBe(false);
  writeFileSync(pathOf(id, "may-end"), "");
  await expect.poll(async () => (await found(hosts, id))?.isOver, POLL).toBe(true);
  expect(said(id).filter((line) => line === "told")).toHaveLength(1);
  await hosts.stop(of(id));
  expect(await found(hosts, id)).toBeUndefined();
});

it("ends a process by force", async () => {
  const hosts = hostsOf();
  const id = await start(hosts);
  await hosts.stop(of(id), { force: true });
  await expect.poll(async () => (await found(hosts, id))?.isOver, POLL).toBe(true);
});

it("says the last line of a process that has ended", async () => {
  const hosts = hostsOf("echo first; echo 'no GPU is free' >&2; exit 1");
  const id = await start(hosts);
  await expect
    .poll(() => found(hosts, id), POLL)
    .toMatchObject({ isOver: true, reason: "no GPU is free" });
});

it("finds the processes of a launcher that was killed", async () => {
  const id = await start(hostsOf());
  const next = hostsOf();
  expect((await found(next, id))?.isOver).toBe(false);
  await next.stop(of(id), { force: true });
  await expect.poll(async () => (await found(next, id))?.isOver, POLL).toBe(true);
});

it("waits a minute for the process of a launcher that was killed in the middle of a start", async () => {
  const id = crypto.randomUUID();
  const path = dirname(pathOf(id, "pid"));
  mkdirSync(path, { recursive: true });
  const hosts = hostsOf();
  const machine = await found(hosts, id);
  expect(machine?.isOver).toBe(false);
  expect(machine?.startedAtMs).toBeGreaterThan(Date.now() - 60_000);
  await expect(hosts.stop(of(id))).rejects.toThrow("it is only being started");
  const longAgo = Date.now() / 1_000 - 180;
  utimesSync(path, longAgo, longAgo);
  expect((await found(hosts, id))?.isOver).toBe(true);
  await hosts.stop(of(id));
  expect(existsSync(path)).toBe(false);
});

it("takes no other process with the same pid for a machine", async () => {
  const hosts = hostsOf();
  const id = await start(hosts);
  const [pid, since] = readFileSync(pathOf(id, "pid"), "utf8").trim().split(" ");
  expect(Number(since)).toBeGreaterThan(0);
  writeFileSync(pathOf(id, "pid"), `${process.pid} ${since}\n`);
  expect((await found(hosts, id))?.isOver).toBe(true);
  writeFileSync(pathOf(id, "pid"), `${pid} ${since}\n`);
  expect((await found(hosts, id))?.isOver).toBe(false);
});

it("starts a machine where the fewest are, and says when no host has room", async () => {
  const one = here({ name: "one", maxMachines: 1 });
  const two = here({
    name: "two",
    maxMachines: 1,
    shell: ["env", `HOME=${folder}`, "sh"],
  });
  const hosts = new ShellHosts({
    hosts: [one, two],
    // Each host has a folder of its own.
    folder: `${quoted(folder)}/machines-"\${HOME##*/}"`,
    command: ["sleep", "1000"],
    run: runner(process.env),
    now: Date.now,
  });
  await start(hosts);
  await start(hosts);
  expect(await hosts.list()).toHaveLength(2);
  await expect(start(hosts)).rejects.toThrow("no host is free: each of 2 has a machine");
});

it("keeps the machines of a host that is not reached, and starts none there", async () => {
  const gone = join(folder, "gone");
  writeFileSync(gone, "");
  const away = here({
    name: "away",
    shell: ["sh", "-c", `[ -e ${gone} ] || { echo 'no route to host' >&2; exit 255; }; exec sh`],
  });
  const hosts = hostsOf(WORKER, [away, here({ maxMachines: 0 })]);
  const id = await start(hosts);
  await hosts.list();
  rmSync(gone);
  expect((await found(hosts, id))?.isOver).toBe(false);
  await expect(start(hosts)).rejects.toThrow(/away is not reached \(sh: no route to host\)/);
  writeFileSync(gone, "");
});

it("says that no host is reached", async () => {
  const hosts = hostsOf(WORKER, [here({ shell: ["a-program-that-is-not-there"] })]);
  await expect(hosts.list()).rejects.toThrow("a-program-that-is-not-there is not in PATH");
});
