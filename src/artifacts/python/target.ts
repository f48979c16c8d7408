/** What names a service in Python: `file.py`, `file.py:Name` or `package.module:Name`. */
import { existsSync } from "node:fs";
import type { ServiceEntry } from "../../protocol/messages.ts";

const FILE = /^(?<module>.+\.py)(?::(?<name>[A-Za-z_]\w*))?$/;
const MODULE = /^(?<module>[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*):(?<name>[A-Za-z_]\w*)$/;

/** The module and the name in it; undefined for what is no service in Python. */
export function pythonTarget(text: string): ServiceEntry | undefined {
  const groups =
    FILE.exec(text)?.groups ?? (existsSync(text) ? undefined : MODULE.exec(text)?.groups);
  if (groups?.module === undefined) {
    return undefined;
  }
  const { module, name } = groups;
  return name === undefined ? { module } : { module, name };
}
