/** The interpreter of the services of tests: pydantic, and nothing else. */
import type { PythonOptions } from "../../../src/artifacts/python/interpreter.ts";
import { environment } from "../clients/python-environment.ts";

export async function serviceInterpreter(): Promise<PythonOptions> {
  const { python } = await environment({ name: "services", packages: ["pydantic>=2"] });
  return { named: python, activeEnvironment: undefined, env: {} };
}
