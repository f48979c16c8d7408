/**
 * The system for services in Python: Python, bubblewrap and the libraries of Node,
 * unpacked from Debian's packages and not installed. So there is no shell and no
 * package manager, and no script of a package has run. Packages of services come by
 * uv, as wheels; nothing is compiled in the image.
 */
import { existsSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { run } from "../run.ts";
import { librariesOf } from "./libraries.ts";

const PACKAGES = [
  "bubblewrap",
  // Wheels expect these two of every machine.
  "libgomp1",
  "libstdc++6",
  "python3",
  // For setpriv: workers end with their node.
  "util-linux",
];

/** Programs and libraries of the packages that stay; others of util-linux are for shells. */
const PROGRAMS = /^(?:bwrap|python3(?:\.\d+)?|setpriv)$/;

const HOOKS = "/usr/share/mmdebstrap/hooks/merged-usr";

/** What each package is, for scanners of images, as Google's distroless images have it. */
const RECORD_PACKAGES = `
mkdir -p "$1/var/lib/dpkg/status.d"
for file in "$1"/var/cache/apt/archives/*.deb; do
  dpkg-deb --field "$file" >"$1/var/lib/dpkg/status.d/$(dpkg-deb --field "$file" Package)"
done`;

/** Folders that only a package manager, a boot or a person at a terminal reads. */
const NEEDLESS = [
  ...["boot", "dev", "home", "media", "mnt", "opt", "proc", "root", "run", "srv", "sys", "tmp"],
  ...["etc", "var/cache", "var/lib/apt", "var/log", "var/mail", "var/tmp", "usr/sbin", "usr/games"],
  ...["usr/include", "usr/lib/systemd", "usr/lib/tmpfiles.d", "usr/lib/udev", "usr/lib/valgrind"],
];

/** Writes the system into `root`, which is empty. Throws where it lacks a library of `programs`. */
export function writePython(root: string, programs: readonly string[]): void {
  const suite = run("sh", ["-c", '. /etc/os-release; echo "$VERSION_CODENAME"']);
  run(
    "mmdebstrap",
    [
      ...["--variant=extract", `--include=${PACKAGES.join(",")}`, `--hook-dir=${HOOKS}`],
      "--dpkgopt=path-exclude=/usr/share/*",
      "--dpkgopt=path-include=/usr/share/doc/*/copyright",
      `--extract-hook=${RECORD_PACKAGES}`,
      ...[suite, root],
    ],
    { env: { SOURCE_DATE_EPOCH: "0" } },
  );
  for (const path of NEEDLESS) {
    rmSync(join(root, path), { recursive: true, force: true });
  }
  const bin = join(root, "usr/bin");
  for (const name of readdirSync(bin).filter((name) => !PROGRAMS.test(name))) {
    rmSync(join(bin, name), { recursive: true });
  }
  const [python] = readdirSync(bin).filter((name) => /^python3\.\d+$/.test(name));
  if (python === undefined || !existsSync(join(bin, "bwrap"))) {
    throw new Error(`mmdebstrap ${suite} made a system without Python or bubblewrap`);
  }
  // Once and for all, because the image has other times than this folder, and is read-only.
  const compiled = ["-m", "compileall", "-q", "--invalidation-mode", "unchecked-hash"];
  run("chroot", [root, `/usr/bin/${python}`, ...compiled, `/usr/lib/${python}`]);
  const missing = librariesOf(programs).filter((path) => !existsSync(join(root, path)));
  if (missing.length > 0) {
    throw new Error(`the system for Python lacks ${missing.join(", ")}, which Node needs`);
  }
}
