import { execFile, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, it, onTestFinished } from "vitest";
import { leftOut } from "../../needed.ts";

const PROGRAM = join(import.meta.dirname, "stand-ins.ts");
const PUBLIC = ["8.8.8.8", "2606:4700::1111"];
const REFUSED = ["127.0.0.1", "169.254.169.254", "fd00:ec2::254", "10.9.9.9", "168.63.129.16"];

/** Whether this machine lets us make a network namespace and give it addresses. */
const MAKES_NAMESPACES =
  spawnSync("unshare", ["-rn", "ip", "link", "set", "lo", "up"]).status === 0;

const left = leftOut(
  MAKES_NAMESPACES ? undefined : "unshare -rn and ip make no network namespace here",
);

// Nothing leaves the namespace's loopback.
it.skipIf(left !== "")(
  `metadata and private addresses are never connected to, and public ones are${left}`,
  async () => {
    const folder = mkdtempSync(join(tmpdir(), "egress-"));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const addresses = [...PUBLIC, ...REFUSED];
    const add = addresses
      .filter((address) => address !== "127.0.0.1")
      .map(
        (address) => `ip addr add ${address}/${address.includes(":") ? "128 nodad" : 32} dev lo`,
      );
    const { stdout } = await promisify(execFile)("unshare", [
      ...["-rn", "sh", "-ec"],
      `ip link set lo up; ${add.join("; ")}; exec "$0" "$@"`,
      ...[process.execPath, PROGRAM, folder, ...addresses],
    ]);
    expect(JSON.parse(stdout)).toEqual({
      answers: Object.fromEntries([
        ...PUBLIC.map((address) => [address, "200"]),
        ...REFUSED.map((address) => [address, "403"]),
      ]),
      reached: PUBLIC,
    });
  },
);
