/** What a worker holds, as a node sees it that is not root. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { heldBy } from "../../src/pool/held.ts";
import { pythonMissing } from "../e2e/clients/python-environment.ts";
import { leftOut } from "../needed.ts";

/** Somebody else than root. */
const user = process.getuid?.() || 65_534;
const MEASURE = fileURLToPath(new URL("./measure-held.ts", import.meta.url));
const skipped = leftOut(pythonMissing);

/** Maps two pages of each of so many files of 1 MiB, and deletes and closes these. */
const MAP = `
import ctypes, mmap, os, sys, time
libc = ctypes.CDLL(None)
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
for number in range(int(sys.argv[1])):
    path = f"held-{number}"
    with open(path, "w+b", buffering=0) as file:
        file.write(b"x" * 2**20)
        libc.mmap(None, 8192, mmap.PROT_READ, mmap.MAP_SHARED, file.fileno(), 0)
    os.unlink(path)
print("mapped", flush=True)
time.sleep(60)
`;

/**
 * Holds 8 MiB of memory behind a descriptor whose file has the number of a deleted one on disk:
 * both are counted up, those of memory by each processor.
 */
const SAME_NUMBER = `
import os, sys, time
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
def memory():
    descriptor = os.memfd_create("m")
    return descriptor, os.fstat(descriptor).st_ino
until = time.monotonic() + 20
while time.monotonic() < until:
    descriptor, goal = memory()
    os.close(descriptor)
    goal, number = goal + 20_000, 0
    while number < goal and time.monotonic() < until:
        file = os.open("deleted", os.O_RDWR | os.O_CREAT)
        number = os.fstat(file).st_ino
        os.unlink("deleted")
        if number < goal:
            os.close(file)
    other = 0
    while other < number and time.monotonic() < until:
        descriptor, other = memory()
        if other != number:
            os.close(descriptor)
    if other == number:
        os.write(descriptor, b"x" * 2**23)
        print("held", flush=True)
        time.sleep(60)
print("not found", flush=True)
`;

async function heldWith(files: number): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), "tessera-held-"));
  chmodSync(folder, 0o777);
  const holder = spawn("python3", ["-c", MAP, String(files)], {
    cwd: folder,
    uid: user,
    stdio: ["ignore", "pipe", "inherit"],
  });
  try {
    await once(holder.stdout, "data");
    const flags = ["--disable-warning=ExperimentalWarning", MEASURE];
    const args = [...flags, String(holder.pid), folder, String(user)];
    const measuring = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
    const [said] = await once(measuring.stdout, "data");
    return String(said).trim();
  } finally {
    holder.kill("SIGKILL");
    rmSync(folder, { recursive: true, force: true });
  }
}

it.skipIf(skipped)(
  `one file that is mapped alone counts with what is mapped, and a second cannot be measured${skipped}`,
  async () => {
    expect(await heldWith(1)).toBe("8192");
    expect(await heldWith(2)).toContain("maps files that it has deleted and closed");
  },
);

const inMemory = existsSync("/dev/shm") && process.platform === "linux";

it.skipIf(skipped || !inMemory)(
  `memory behind a descriptor counts beside a file on disk that has the same number${skipped}`,
  async ({ skip }) => {
    // A file system on which the numbers of files are small, as those of files in memory are.
    const folder = mkdtempSync("/dev/shm/tessera-held-");
    const holder = spawn("python3", ["-c", SAME_NUMBER], {
      cwd: folder,
      stdio: ["ignore", "pipe", "inherit"],
    });
    try {
      const [said] = await once(holder.stdout, "data");
      skip(String(said).trim() !== "held", "the numbers of this machine are too far apart");
      expect((await heldBy([holder.pid ?? 0], { scratchFolder: folder })).sharedBytes).toBe(
        8 * 1024 ** 2,
      );
    } finally {
      holder.kill("SIGKILL");
      rmSync(folder, { recursive: true, force: true });
    }
  },
  40_000,
);

it.skipIf(skipped)(
  `a file that is deleted and mapped counts wherever it was written, in the cache too${skipped}`,
  async () => {
    const [scratchFolder, cacheFolder] = ["scratch", "cache"].map((name) =>
      mkdtempSync(join(tmpdir(), `tessera-${name}-`)),
    ) as [string, string];
    const holders = [scratchFolder, cacheFolder].map((cwd) =>
      spawn("python3", ["-c", MAP, "1"], { cwd, stdio: ["ignore", "pipe", "inherit"] }),
    );
    try {
      await Promise.all(holders.map((holder) => once(holder.stdout, "data")));
      for (const { pid = 0 } of holders) {
        const { diskBytes, cachedBytes } = await heldBy([pid], { scratchFolder, cacheFolder });
        // The root learns the size of the file, others that of what is mapped.
        expect(diskBytes + cachedBytes).toBe(process.getuid?.() === 0 ? 2 ** 20 : 8_192);
      }
    } finally {
      for (const holder of holders) {
        holder.kill("SIGKILL");
      }
      for (const folder of [scratchFolder, cacheFolder]) {
        rmSync(folder, { recursive: true, force: true });
      }
    }
  },
);
