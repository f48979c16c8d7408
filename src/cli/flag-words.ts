/** Says in the words of the command line what a server says of the fields of a request. */
import type { Argument, Command } from "commander";

/** Fields whose flag or argument has another name, the first that the command has counts. */
const NAMES: Readonly<Record<string, readonly string[]>> = {
  access: ["--access"],
  all: ["--all"],
  allowed_networks: ["--allow-network"],
  created_before: ["--older-than"],
  created_from: ["--newer-than"],
  deployment: ["<deployment>", "<name>", "--deployment"],
  deployments: ["--deployment"],
  end_time: ["--until"],
  env: ["--env"],
  error_contains: ["--error"],
  expires_at: ["--expires"],
  invitation_id: ["<invitation>"],
  max_workers: ["--workers"],
  memory_mib: ["--memory"],
  min_level: ["--level"],
  min_workers: ["--workers"],
  name: ["--name", "<name>"],
  page_size: ["--limit"],
  requires: ["--require"],
  reveal_enabled: ["--reveal"],
  revision: ["--to", "<revision>"],
  secrets: ["--secret"],
  start_time: ["--since"],
  statuses: ["--status"],
  subject: ["--subject"],
  task_id: ["<task>", "--task"],
  time_before: ["--older-than"],
  time_from: ["--newer-than"],
  token_id: ["<token>"],
  user_id: ["<member>"],
  window: ["--since"],
};

/** Kinds of access, which sentences name as such and not as what to give. */
const ACCESS: ReadonlySet<string> = new Set(["developer_operations", "protected_endpoint"]);

/** Measures of usage, which are given as they are written. */
const MEASURES: ReadonlySet<string> = new Set([
  ...["run_seconds", "gpu_seconds", "bytes_in", "bytes_out"],
]);

/** `86400s` becomes `24h`: durations in the unit that people would give. */
function shortest(text: string): string {
  const seconds = Number(/^(\d+)s$/.exec(text)?.[1] ?? Number.NaN);
  const [unit, factor] =
    [["h", 3_600] as const, ["m", 60] as const].find(([, one]) => seconds % one === 0) ?? [];
  return factor === undefined ? text : `${seconds / factor}${unit}`;
}

interface Violation {
  readonly field: string;
  readonly description: string;
}

export class FlagWords {
  readonly #flags: ReadonlySet<string>;
  readonly #arguments: readonly Argument[];

  constructor(command: Command | undefined) {
    this.#flags = new Set(command?.options.flatMap(({ long }) => long ?? []) ?? []);
    this.#arguments = command?.registeredArguments ?? [];
  }

  /** `expires_at: must be in the future` becomes `--expires must be in the future`. */
  ofViolation({ field, description }: Violation): string {
    const said = this.#reworded(description);
    if (field === "") {
      return said;
    }
    const found = this.#ofField(field);
    return found === undefined ? `${field}: ${said}` : `${found} ${said}`;
  }

  /** The flag or argument of a field, by the last name of its path that has one. */
  #ofField(path: string): string | undefined {
    for (const name of path.split(".").toReversed()) {
      const kebab = name.replaceAll("_", "-");
      const candidates = [`<${kebab}>`, ...(NAMES[name] ?? []), `--${kebab}`];
      const found = candidates.find((each) => this.#has(each));
      if (found !== undefined) {
        return found;
      }
    }
    return undefined;
  }

  #has(name: string): boolean {
    return name.startsWith("<")
      ? this.#arguments.some((each) => `<${each.name()}>` === name)
      : this.#flags.has(name);
  }

  /** Names of fields in the description, such as `all_deployments`, become flags. */
  #reworded(description: string): string {
    return description
      .replace(
        /^value length must be (at least|at most) (\d+) characters?$/,
        (_, bound: string, count: string) =>
          `must have ${bound} ${count} character${count === "1" ? "" : "s"}`,
      )
      .replace(/^value (?=must )/, "")
      .replace(
        /^must be greater than or equal to (\S+) and less than or equal to (\S+)$/,
        (_, least: string, most: string) => `must be from ${shortest(least)} to ${shortest(most)}`,
      )
      .replace(/\bgreater than or equal to\b/, "at least")
      .replace(/\bless than or equal to\b/, "at most")
      .replaceAll(/\b[a-z]+(?:_[a-z]+)+\b/g, (name) => {
        if (MEASURES.has(name)) {
          return name;
        }
        const flag = ACCESS.has(name) ? undefined : this.#ofField(name);
        return flag ?? name.replaceAll("_", " ");
      });
  }
}
