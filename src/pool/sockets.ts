/**
 * Memory in the buffers of a worker's sockets, which no size of its process counts, from Linux's
 * proc_net(5). TCP, UDP and netlink say how much waits in each socket; Unix sockets do not, so
 * each one beyond a few counts as full. In a network of its own, all sockets are the worker's,
 * also those that it has closed, or never accepted. In that of the machine, they are those of
 * its descriptors.
 */
import { readFileSync } from "node:fs";
import { readFile, readlink } from "node:fs/promises";

/** Sockets of a worker that are not looked at, because they cannot hold much. */
const MAX_UNREAD_SOCKETS = 16;
/** What the kernel needs for a socket itself. */
const SOCKET_BYTES = 4_096;
/**
 * A socket whose data waits holds at least this: many small pieces take the whole first buffer of
 * TCP (128 KiB) and show as a few bytes.
 */
const WAITING_BYTES = 128 * 1024;
/** What the parts of a buffer need, as a share of the data in it. */
const BUFFER_OVERHEAD = 1.25;
/**
 * Unix sockets that count as empty: those of connections through the egress proxy, and with which
 * event loops wake each other.
 */
const MAX_UNCOUNTED_UNIX_SOCKETS = 128;
/** Datagrams that wait in a Unix socket, each from a sender with a buffer of its own. */
const MAX_WAITING_DATAGRAMS = 11;
/** How long the sockets of the machine's network, which is large, are kept for all workers. */
const SHARED_TABLE_MS = 1_000;

/** The first word of the socket's line is its number; LISTEN says how many wait, not how much. */
const LISTENING = "0A";
const UNIX_DATAGRAM = "0002";

interface NetworkSocket {
  readonly inode: string;
  readonly bytes: number;
}

/** Bytes of all sockets of the process; `inodes` are those of its descriptors. */
export async function socketBytes(pid: number, inodes: ReadonlySet<string>): Promise<number> {
  if (await hasOwnNetwork(pid)) {
    const network = `/proc/${pid}/net`;
    if ((await countOf(network)) <= MAX_UNREAD_SOCKETS) {
      return 0;
    }
    const all = [...(await readSockets(network)), ...(await netlinkSockets(network))];
    return sumOf(all) + (await unixBytes(network));
  }
  if (inodes.size <= MAX_UNREAD_SOCKETS) {
    return 0;
  }
  return sumOf((await machineSockets()).filter(({ inode }) => inodes.has(inode)));
}

async function hasOwnNetwork(pid: number): Promise<boolean> {
  const [its, ours] = await Promise.all(
    [pid, "self"].map((each) => readlink(`/proc/${each}/ns/net`)),
  );
  return its !== ours;
}

/** All sockets of a network, whatever their family. */
async function countOf(network: string): Promise<number> {
  const text = await readFile(`${network}/sockstat`, "latin1");
  return Number(/^sockets: used (\d+)/.exec(text)?.[1] ?? Number.POSITIVE_INFINITY);
}

let kept: { readonly untilMs: number; readonly sockets: Promise<NetworkSocket[]> } | undefined;

function machineSockets(): Promise<NetworkSocket[]> {
  const nowMs = performance.now();
  if (kept === undefined || nowMs >= kept.untilMs) {
    kept = { untilMs: nowMs + SHARED_TABLE_MS, sockets: readSockets("/proc/self/net") };
  }
  return kept.sockets;
}

async function readSockets(network: string): Promise<NetworkSocket[]> {
  const tables = await Promise.all(
    ["tcp", "tcp6", "udp", "udp6"].map((name) => linesOf(`${network}/${name}`)),
  );
  return tables.flat().map((line) => {
    const [, , , state, queues = "", , , , , inode = ""] = line;
    const [sending = 0, received = 0] =
      state === LISTENING ? [] : queues.split(":").map((text) => Number.parseInt(text, 16));
    return { inode, bytes: bufferBytes(sending, received) };
  });
}

async function netlinkSockets(network: string): Promise<NetworkSocket[]> {
  const lines = await linesOf(`${network}/netlink`);
  return lines.map(([, , , , received, sending, , , , inode = ""]) => ({
    inode,
    bytes: bufferBytes(Number(sending), Number(received)),
  }));
}

function bufferBytes(sending: number, received: number): number {
  const waiting = (sending + received) * BUFFER_OVERHEAD;
  return SOCKET_BYTES + (received > 0 ? Math.max(waiting, WAITING_BYTES) : waiting);
}

async function unixBytes(network: string): Promise<number> {
  const lines = await linesOf(`${network}/unix`);
  const buffers = lines.reduce(
    (sum, [, , , , type]) => sum + (type === UNIX_DATAGRAM ? MAX_WAITING_DATAGRAMS : 1),
    0,
  );
  return Math.max(0, buffers - MAX_UNCOUNTED_UNIX_SOCKETS) * (SOCKET_BYTES + defaultBuffer());
}

let buffer: number | undefined;

/** The size of a socket's buffer, which the seccomp filter keeps as it is. */
function defaultBuffer(): number {
  buffer ??= Number(readFileSync("/proc/sys/net/core/wmem_default", "latin1"));
  return buffer;
}

/** The words of each line but the first. A kernel without a protocol has no table of it. */
async function linesOf(path: string): Promise<string[][]> {
  const text = await readFile(path, "latin1").catch((err: NodeJS.ErrnoException) => {
    if (err.code === "ENOENT") {
      return "";
    }
    throw err;
  });
  return text
    .split("\n")
    .slice(1)
    .filter((line) => line !== "")
    .map((line) => line.trim().split(/\s+/));
}

function sumOf(sockets: readonly NetworkSocket[]): number {
  return sockets.reduce((sum, { bytes }) => sum + bytes, 0);
}
