/** Opens the service that a developer names, in whichever language it is. */
import { bundleService, type ServiceBundle, ServiceFileError } from "./bundle.ts";
import { openProgram, type ProgramService } from "./program.ts";
import type { PythonOptions } from "./python/interpreter.ts";
import { openPythonService, type PythonService } from "./python/service.ts";
import { pythonTarget } from "./python/target.ts";

/** A service as `tessera serve` loads it, again for each change of its sources. */
export type OpenedService = ServiceBundle | PythonService;

/** Rejects with a `ServiceFileError`. */
export async function openService(
  target: string | ProgramService,
  python: PythonOptions,
): Promise<OpenedService> {
  if (typeof target !== "string") {
    return openProgram(target);
  }
  const entry = pythonTarget(target);
  if (entry !== undefined) {
    return openPythonService(entry, python);
  }
  if (python.named !== undefined) {
    throw new ServiceFileError(`--python is for services in Python, and ${target} is not one`);
  }
  return bundleService(target);
}
