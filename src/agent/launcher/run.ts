/** Runs the programs of clusters, such as `sbatch`: bounded in time and in what they write. */
import { spawn } from "node:child_process";

/** How long a program may take. A controller of Slurm that starts may need half a minute. */
const PROGRAM_TIMEOUT_MS = 60_000;

/** What a program may write: a list of 100,000 jobs, or of 2,000 Pods. */
const MAX_OUTPUT_BYTES = 16 * 1024 ** 2;

/** Of what a program says of its failure. */
const MAX_FAULT_CHARACTERS = 1_000;

/** Secrets of the launcher, which nothing that it starts is given. */
const OWN_VARIABLES = ["TESSERA_LAUNCH_TOKEN"];

/** Runs a program with `input` on its standard input; see `runner`. */
export type Run = (command: readonly [string, ...string[]], input?: string) => Promise<string>;

/**
 * Runs programs with these variables, but for the launcher's secrets. A run resolves with what the
 * program wrote; it rejects with what that said on its error output, where it ended with a failure
 * or took too long.
 */
export function runner(env: NodeJS.ProcessEnv): Run {
  const given = Object.entries(env).filter(([name]) => !OWN_VARIABLES.includes(name));
  const inherited = Object.fromEntries(given);
  return (command, input = "") => run(command, { env: inherited, input });
}

async function run(
  [program, ...args]: readonly [string, ...string[]],
  { env, input }: { readonly env: NodeJS.ProcessEnv; readonly input: string },
): Promise<string> {
  const child = spawn(program, args, {
    stdio: ["pipe", "pipe", "pipe"],
    env,
    timeout: PROGRAM_TIMEOUT_MS,
    killSignal: "SIGKILL",
  });
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const written: Buffer[] = [];
  const said: Buffer[] = [];
  let bytes = 0;
  const collect = (into: Buffer[]) => (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > MAX_OUTPUT_BYTES) {
      child.kill("SIGKILL");
    } else {
      into.push(chunk);
    }
  };
  child.stdout.on("data", collect(written));
  child.stderr.on("data", collect(said));
  child.on("error", (err: NodeJS.ErrnoException) => {
    reject(err.code === "ENOENT" ? new Error(`${program} is not in PATH of this machine`) : err);
  });
  child.on("close", (code, signal) => {
    if (code === 0) {
      resolve(Buffer.concat(written).toString());
      return;
    }
    const text = Buffer.concat(said).toString().trim().slice(-MAX_FAULT_CHARACTERS);
    const how =
      signal === null ? `with ${code}` : `by ${signal}, after a minute or too much output`;
    reject(new Error(text === "" ? `${program} ended ${how}` : `${program}: ${text}`));
  });
  // One that ends without reading closes its end first.
  child.stdin.on("error", () => {});
  child.stdin.end(input);
  return await promise;
}

/** A text as one word of a POSIX shell. */
export function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

/** Lines of a POSIX shell that set variables. */
export function exports(env: { readonly [name: string]: string }): string {
  return Object.entries(env)
    .map(([name, value]) => `export ${name}=${quoted(value)}\n`)
    .join("");
}

/**
 * The script of a job of a cluster: runs a command in a data folder of its own, and ends as it
 * does. Jobs that begin in one folder, which hosts share, must not share code and models in it.
 * The command is told once to end: by this script, or with `toldTogether` by the cluster, which
 * tells all processes of a job.
 */
export function jobScript(
  command: readonly string[],
  { toldTogether }: { readonly toldTogether: boolean },
): string {
  const tell = toldTogether ? ":" : '[ -z "$worker" ] || kill -TERM "$worker"';
  return `worker='' told='' own='' code=1
[ -n "$TESSERA_DATA" ] || { own=$(mktemp -d) && export TESSERA_DATA="$own"; } || exit 1
trap 'trap "" TERM; told=yes; ${tell}' TERM
${command.map(quoted).join(" ")} &
worker=$!
[ -z "$told" ] || kill -TERM "$worker"
while kill -0 "$worker" 2>/dev/null; do wait "$worker"; code=$?; done
[ -z "$own" ] || rm -rf "$own"
exit "$code"
`;
}
