/** Services in Python of the fixtures, as a node hosts them. */
import { lstatSync, readlinkSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { openInterpreter } from "../../../src/artifacts/environments/interpreters.ts";
import type { LaunchOf } from "../../../src/pool/launchers.ts";
import { Hosting, type RevisionSettings } from "../deployments/hosting.ts";
import { serviceInterpreter } from "./interpreter.ts";

/** The path of a fixture. */
export function fixture(name: string): string {
  return fileURLToPath(new URL(`../../fixtures/services/${name}`, import.meta.url));
}

/** Where the links lead that an interpreter is reached by, each of which is followed inside. */
function links(path: string): string[] {
  if (!lstatSync(path).isSymbolicLink()) {
    return [];
  }
  const target = resolve(dirname(path), readlinkSync(path));
  return [target, ...links(target)];
}

export async function hostedPython(
  service: string,
  launchOf: LaunchOf,
  settings: RevisionSettings = {},
): Promise<Hosting> {
  const { named = "" } = await serviceInterpreter();
  const interpreter = await openInterpreter(named, process.env.PATH ?? "");
  const hosting = await Hosting.start({ launchOf });
  const revision = await hosting.revision("", settings);
  const environment = dirname(dirname(named));
  const outside = links(named).filter((path) => !path.startsWith(environment));
  const code = {
    module: service,
    interpreter: named,
    env: {},
    files: [service, environment, ...outside, ...(interpreter?.files ?? [])],
  };
  await hosting.hosted.deploy({ ...revision, servicePath: service, code });
  return hosting;
}
