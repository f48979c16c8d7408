/** How a deployment runs, as people type it: for `deploy`, `deployment update` and `tessera.yaml`. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { DeploymentSettingsSchema } from "../../client/index.ts";
import { type CallFlags, option, repeatable } from "../command.ts";
import { usageError } from "../failure.ts";

/** What is given; the rest stays as it is. */
export type GivenSettings = Pick<
  MessageInitShape<typeof DeploymentSettingsSchema> & object,
  "minWorkers" | "maxWorkers" | "memoryMib" | "cpu" | "env"
>;

export interface SettingsFlags extends CallFlags {
  readonly authorization?: boolean;
  readonly workers?: string;
  readonly memory?: string;
  readonly cpu?: string;
  readonly env?: readonly string[];
}

export const SETTINGS_OPTIONS = [
  option("--authorization", "callers need a token with protected endpoint access for it"),
  option("--no-authorization", "anyone who can reach it may call it"),
  option("--workers <min..max>", "how many workers: 1..4, or 2 for always two (default: 1..2)"),
  option("--memory <size>", "what each worker may use, such as 512Mi or 2Gi (default: 512Mi)"),
  option("--cpu <count>", "processors that each worker may use, such as 0.5 (default: 1)"),
  repeatable("--env <NAME=value>", "a variable for the workers; they replace all there were"),
];

export const MAX_WORKERS = 100;
const MEMORY_MIB = { min: 64, max: 65_536 };
const CPU = { min: 0.1, max: 64 };

export const NAME_PATTERN = /^[A-Za-z_][A-Za-z0-9_]{0,127}$/;
/** Of a variable or secret. */
export const MAX_VALUE_BYTES = 16_384;

/** Reads the flags. Throws a usage error for what cannot be. */
export function settingsOf({ workers, memory, cpu, env }: SettingsFlags): GivenSettings {
  return {
    ...(workers !== undefined && parsed("--workers", workers, parseWorkers)),
    ...(memory !== undefined && { memoryMib: parsed("--memory", memory, parseMemory) }),
    ...(cpu !== undefined && { cpu: parsed("--cpu", cpu, parseCpu) }),
    ...(env !== undefined && { env: parseVariables(env) }),
  };
}

/** A value, or in words what it must be. */
export type Parsed<T> = { readonly value: T } | { readonly fault: string };

function parsed<T>(flag: string, text: string, parse: (text: string) => Parsed<T>): T {
  const read = parse(text);
  if ("fault" in read) {
    throw usageError(`${flag} ${JSON.stringify(text)} ${read.fault}`);
  }
  return read.value;
}

function parseWorkers(
  text: string,
): Parsed<{ readonly minWorkers: number; readonly maxWorkers: number }> {
  const [, min, max = min] = /^(\d{1,3})(?:\.\.(\d{1,3}))?$/.exec(text) ?? [];
  const [minWorkers, maxWorkers] = [Number(min), Number(max)];
  return min !== undefined &&
    minWorkers <= maxWorkers &&
    maxWorkers >= 1 &&
    maxWorkers <= MAX_WORKERS
    ? { value: { minWorkers, maxWorkers } }
    : {
        fault: `must be a number from 1 to ${MAX_WORKERS}, or two such as 0..4: 0 starts one when it is called`,
      };
}

/** Mebibytes of a size with unit. */
export function parseMemory(text: string): Parsed<number> {
  const [, count, unit] = /^(\d{1,6})(Mi|Gi)B?$/.exec(text) ?? [];
  const mib = Number(count) * (unit === "Gi" ? 1024 : 1);
  return mib >= MEMORY_MIB.min && mib <= MEMORY_MIB.max
    ? { value: mib }
    : { fault: "must be from 64Mi to 64Gi, such as 512Mi" };
}

export function parseCpu(text: string): Parsed<number> {
  const count = /^\d{1,3}(?:\.\d{1,3})?$/.test(text) ? Number(text) : Number.NaN;
  return count >= CPU.min && count <= CPU.max
    ? { value: count }
    : { fault: `must be a number from ${CPU.min} to ${CPU.max}, such as 0.5` };
}

/** Variables as they are typed. What stands there is often a secret, and is not quoted. */
function parseVariables(variables: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    variables.map((variable) => {
      const [, name, value] = /^(\w+)=(.*)$/s.exec(variable) ?? [];
      if (name === undefined || value === undefined || !NAME_PATTERN.test(name)) {
        throw usageError("--env takes NAME=value", "such as --env MODEL=small");
      }
      return [name, checkedValue(`--env ${name}`, value)];
    }),
  );
}

function checkedValue(what: string, value: string): string {
  if (Buffer.byteLength(value) > MAX_VALUE_BYTES) {
    throw usageError(`${what} is longer than ${MAX_VALUE_BYTES} bytes`);
  }
  return value;
}
