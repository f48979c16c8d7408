/**
 * Machines as processes of hosts that are reached by a shell: this one (`exec`), or others by
 * `ssh`. Nothing has to be installed there but what the machine runs.
 *
 * A machine is a process that outlives the shell that started it, and its launcher. Beside it is
 * a folder, by which any launcher finds it again: its pid with the moment at which that process
 * began (so that another process with the same pid is not taken for it), and its output, whose
 * last line says why it ended. The token travels on the standard input of the shell, for other
 * users can see a command line.
 *
 * A process is told to end once (SIGTERM): a worker that hears it again ends at once.
 */
import type { ClusterMachine, MachineOrder, Machines } from "./machines.ts";
import { exports, quoted, type Run } from "./run.ts";

/** Of the last line that a machine wrote. */
const MAX_LAST_LINE_CHARACTERS = 500;

/** A host, and how its shell is reached. */
export interface Host {
  /** For people. */
  readonly name: string;
  /** Runs a script that it reads from its standard input. */
  readonly shell: readonly [string, ...string[]];
  /** Machines that it has at a time. */
  readonly maxMachines: number;
  /** Where its machines keep code and models, as its shell reads it. Default: each in its own folder, until its end. */
  readonly data?: string;
}

interface HostsOptions {
  readonly hosts: readonly Host[];
  /** The folder of the machines on each host, as the shell reads it: `"$HOME/…"`. */
  readonly folder: string;
  /** What a machine runs. */
  readonly command: readonly string[];
  readonly run: Run;
  readonly now: () => number;
}

/** The launcher's machines on hosts. */
export class ShellHosts implements Machines {
  readonly #options: HostsOptions;
  /** What each host said last. */
  readonly #known = new Map<string, readonly ClusterMachine[]>();
  /** Why a host is not reached; absent for those that are. */
  readonly #faults = new Map<string, string>();

  constructor(options: HostsOptions) {
    this.#options = options;
  }

  async start({ id, deploymentId, env }: MachineOrder): Promise<void> {
    const host = this.#free();
    const { folder, command, now } = this.#options;
    const machine = quoted(`${deploymentId}.${id}`);
    // The shell waits until the process has said who it is: without that it would seem to be over.
    const script = `${PRELUDE}
mkdir -p ${folder}/${machine} && cd ${folder}/${machine} || exit 1
${exports(env)}${host.data === undefined ? "" : `export TESSERA_DATA=${host.data}\n`}
setsid sh -c '${BORN}; since=$(born "$$"); echo "$$ \${since#* }" > pid; exec "$@"' \\
  sh ${command.map(quoted).join(" ")} > output 2>&1 < /dev/null &
waited=0
until [ -s pid ] || [ "$waited" -ge 100 ]; do sleep 0.1; waited=$((waited + 1)); done
[ -s pid ] || { tail -n 1 output >&2; cd .. && rm -rf ${machine}; exit 1; }
`;
    await this.#run(host, script);
    const started = { id, deploymentId, startedAtMs: now(), isWaiting: false, isOver: false };
    this.#known.set(host.name, [...(this.#known.get(host.name) ?? []), { ...started, reason: "" }]);
  }

  async stop(
    { id, deploymentId }: Pick<ClusterMachine, "id" | "deploymentId">,
    { force } = { force: false },
  ): Promise<void> {
    const isIt = (one: ClusterMachine): boolean => one.id === id;
    const host = this.#options.hosts.find(({ name }) => this.#known.get(name)?.some(isIt));
    if (host === undefined) {
      return;
    }
    const { folder } = this.#options;
    const machine = quoted(`${deploymentId}.${id}`);
    const tell = force
      ? 'kill -KILL -- "-$pid" 2>/dev/null || kill -KILL "$pid"'
      : '[ -e told ] || { : > told; kill -TERM "$pid"; }';
    await this.#run(
      host,
      `${PRELUDE}
cd ${folder}/${machine} 2>/dev/null || exit 0
if alive; then [ -s pid ] || { echo 'it is only being started' >&2; exit 1; }; ${tell}; else cd .. && rm -rf ${machine}; fi
`,
    );
  }

  async list(): Promise<readonly ClusterMachine[]> {
    const { hosts, folder } = this.#options;
    const script = `${PRELUDE}
cd ${folder} 2>/dev/null || exit 0
for machine in *.*; do
  [ -d "$machine" ] || continue
  cd "$machine" || continue
  if alive; then state=alive; else state=over; fi
  echo "$machine $state $(stat -c %Y pid 2>/dev/null || stat -c %Y .) $(tail -n 1 output 2>/dev/null | tr -d '\\000-\\037' | cut -c 1-${MAX_LAST_LINE_CHARACTERS})"
  cd ..
done
`;
    const reads = hosts.map(async (host) => {
      try {
        const said = await this.#run(host, script);
        this.#known.set(host.name, said.split("\n").flatMap(machineOf));
        this.#faults.delete(host.name);
      } catch (err) {
        // Its machines go on, for all that is known.
        this.#faults.set(host.name, err instanceof Error ? err.message : String(err));
      }
    });
    await Promise.all(reads);
    if (this.#faults.size === hosts.length) {
      throw new Error(this.#faultText());
    }
    return hosts.flatMap(({ name }) => this.#known.get(name) ?? []);
  }

  #run(host: Host, script: string): Promise<string> {
    return this.#options.run(host.shell, script);
  }

  /** The host with the fewest machines that has room for another. */
  #free(): Host {
    const [host] = this.#options.hosts
      .map((each) => ({ ...each, machines: this.#known.get(each.name)?.length ?? 0 }))
      .filter(
        ({ name, machines, maxMachines }) => machines < maxMachines && !this.#faults.has(name),
      )
      .sort((one, other) => one.machines - other.machines);
    if (host === undefined) {
      const count = this.#options.hosts.length - this.#faults.size;
      const away = this.#faults.size > 0 ? `; ${this.#faultText()}` : "";
      throw new Error(`no host is free: each of ${count} has a machine${away}`);
    }
    return host;
  }

  #faultText(): string {
    return [...this.#faults].map(([name, fault]) => `${name} is not reached (${fault})`).join(", ");
  }
}

/** Says the state of a process and the moment at which it began, in ticks of its kernel. */
const BORN = `born() { sed "s/.*) //" "/proc/$1/stat" 2>/dev/null | cut -d" " -f1,20; }`;

/**
 * `alive`: whether the process of the machine in this folder runs, and is no corpse; or will: one
 * whose launcher was killed between folder and pid has a minute to say who it is.
 */
const PRELUDE = `umask 077
${BORN}
alive() {
  [ -s pid ] || { [ -z "$(find . -maxdepth 0 -mmin +1)" ]; return; }
  read -r pid since 2>/dev/null < pid || return 1
  now=$(born "$pid") || return 1
  [ "\${now#* }" = "$since" ] && [ "\${now% *}" != Z ]
}
`;

function machineOf(line: string): ClusterMachine[] {
  const [, deploymentId, id, state, seconds, reason] =
    /^([\w-]+)\.([\w-]+) (alive|over) (\d+) ?(.*)$/.exec(line) ?? [];
  return deploymentId === undefined || id === undefined
    ? []
    : [
        {
          id,
          deploymentId,
          startedAtMs: Number(seconds) * 1_000,
          isWaiting: false,
          isOver: state === "over",
          reason: reason ?? "",
        },
      ];
}
