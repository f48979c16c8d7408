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

/** Lines with tags that are read of a package: wheels have one for each of a few platforms. */
const MAX_TAG_LINES = 100;
/** Values of a part of a tag, such as `py2.py3`, that are read. */
const MAX_TAG_VALUES = 16;

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
  const byProject = Map.groupBy(wheels, ({ name }) => projectOf(name));
  for (const [project, brought] of byProject) {
    // One of them, of one release, whose folder may spell the version in another way.
    const info = installed.find((name) => projectOf(name) === project);
    if (info === undefined) {
      // The lock has no use for it here.
      continue;
    }
    const named = brought.flatMap(({ name }) => tagsOfName(name));
    const inside = tagsInside(await readStart(join(packages, info, "WHEEL"), MAX_WHEEL_FILE_BYTES));
    if (!inside.some((own) => named.some((tag) => agree(own, tag)))) {
      const own = inside.map(({ python, abi, platform }) => `${python}-${abi}-${platform}`);
      const names = brought.map(({ name }) => name).join(", ");
      throw new EnvironmentError(
        "LOCK_INVALID",
        `the package ${names} is for ${own.join(", ").slice(0, 200) || "nothing that it names"} by the file WHEEL in it, which is not what its name says: bring the wheel as its index has it`,
        { isFinal: true },
      );
    }
  }
}

/** Of a wheel, or of the folder that describes an installed package. */
function projectOf(name: string): string {
  return packageName(name.split("-", 1)[0] ?? "");
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
  const lines = [...text.matchAll(/^Tag: *(\S+) *$/gm)].slice(0, MAX_TAG_LINES);
  return lines.flatMap(([, tag = ""]) => {
    const [pythons = "", abis = "", platforms = ""] = tag.split("-");
    return product(pythons, abis, platforms);
  });
}

function product(pythons: string, abis: string, platforms: string): readonly Tag[] {
  const values = (text: string): string[] => text.split(".", MAX_TAG_VALUES);
  return values(pythons).flatMap((python) =>
    values(abis).flatMap((abi) => values(platforms).map((platform) => ({ python, abi, platform }))),
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
