/**
 * Checks that wheels are what their file names say. The name of a wheel has tags of the
 * versions of Python and the platforms that it is for (PEP 425), by which installers choose, and
 * so has a file in it. A lock names the digests of a release's wheels for all platforms, so
 * under a name that lies each of them would pass as the one for this machine.
 */
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { readStart } from "./contents.ts";
import { EnvironmentError, type Wheel } from "./environment.ts";
import { packageName } from "./requirements.ts";

/** The file `WHEEL` of a package, which has a line for each tag. */
const MAX_WHEEL_FILE_BYTES = 64 * 1024;

interface Tag {
  readonly python: string;
  readonly abi: string;
  readonly platform: string;
}

/**
 * Looks into the packages that were installed from wheels. Rejects with an `EnvironmentError` for
 * one whose tags are others than its file name has.
 */
export async function checkTags(packages: string, wheels: readonly Wheel[]): Promise<void> {
  const installed = (await readdir(packages)).filter((name) => name.endsWith(".dist-info"));
  for (const { name } of wheels) {
    const [project = "", version = ""] = name.split("-");
    const key = packageName(project);
    const info = installed.find((each) => {
      const [of = "", is = ""] = each.slice(0, -".dist-info".length).split("-");
      return packageName(of) === key && is === version;
    });
    if (info === undefined) {
      // The lock has no use for it here.
      continue;
    }
    const named = tagsOfName(name);
    const inside = tagsInside(await readStart(join(packages, info, "WHEEL"), MAX_WHEEL_FILE_BYTES));
    if (!inside.some((own) => named.some((tag) => agree(own, tag)))) {
      const own = inside.map(({ python, abi, platform }) => `${python}-${abi}-${platform}`);
      throw new EnvironmentError(
        "LOCK_INVALID",
        `the package ${name} is for ${own.join(", ").slice(0, 200) || "nothing that it names"} by the file WHEEL in it, which is not what its name says: bring the wheel as its index has it`,
        { isFinal: true },
      );
    }
  }
}

/** The tags of a file name, in which `.` separates several values of one. */
function tagsOfName(name: string): readonly Tag[] {
  const [platforms = "", abis = "", pythons = ""] = name
    .slice(0, -".whl".length)
    .split("-")
    .toReversed();
  return product(pythons, abis, platforms);
}

function tagsInside(text: string): readonly Tag[] {
  return [...text.matchAll(/^Tag:\s*(\S+)\s*$/gm)].flatMap(([, tag = ""]) => {
    const [pythons = "", abis = "", platforms = ""] = tag.split("-");
    return product(pythons, abis, platforms);
  });
}

function product(pythons: string, abis: string, platforms: string): readonly Tag[] {
  return pythons
    .split(".")
    .flatMap((python) =>
      abis
        .split(".")
        .flatMap((abi) => platforms.split(".").map((platform) => ({ python, abi, platform }))),
    );
}

/**
 * Tools that repair wheels for older systems rename them, and not all write that into the file:
 * platforms agree when they are the same system on the same processor.
 */
function agree(own: Tag, named: Tag): boolean {
  return (
    own.python === named.python &&
    own.abi === named.abi &&
    systemOf(own.platform) === systemOf(named.platform)
  );
}

/** `manylinux_2_17_x86_64` and `linux_x86_64` are for one system; macOS has programs for both processors. */
function systemOf(platform: string): string {
  const linux = /^(?:many)?linux(?:\d+|_\d+_\d+)?_(?<machine>\w+)$/.exec(platform)?.groups;
  const mac = /^macosx_\d+_\d+_\w+$/.test(platform);
  return linux
    ? `linux ${linux.machine}`
    : mac
      ? "macosx"
      : platform.replace(/^(musllinux)_\d+_\d+/, "$1");
}
