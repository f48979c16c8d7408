/** A shell at a terminal, as somebody types into it: `script` of util-linux gives it the terminal. */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { stripVTControlCharacters } from "node:util";

/** Without what its user has configured. */
const INTERACTIVE = {
  bash: "bash --norc --noprofile -i",
  zsh: "zsh -f -i",
} as const;

export type InteractiveShell = keyof typeof INTERACTIVE;

/** Longer than a test may take. */
const LIMIT_MS = 60_000;
/** Deletes what is typed. */
const CONTROL_U = "\x15";

export function isInstalled(shell: string): boolean {
  try {
    execFileSync(shell, ["-c", "true"]);
    return true;
  } catch {
    return false;
  }
}

export class ShellTerminal implements AsyncDisposable {
  readonly #child: ChildProcess;
  readonly #closed: Promise<unknown>;
  #output = "";
  #grown = Promise.withResolvers<void>();

  private constructor(child: ChildProcess) {
    this.#child = child;
    this.#closed = once(child, "close").then(() => this.#grown.resolve());
    child.stdout?.setEncoding("utf8").on("data", (text: string) => {
      this.#output += text;
      this.#grown.resolve();
      this.#grown = Promise.withResolvers();
    });
  }

  /** Starts the shell in a folder that has the program `tessera`, and loads its completion. */
  static async start(shell: InteractiveShell, folder: string): Promise<ShellTerminal> {
    const child = spawn("script", ["-qec", INTERACTIVE[shell], "/dev/null"], {
      cwd: folder,
      stdio: ["pipe", "pipe", "ignore"],
      timeout: LIMIT_MS,
      killSignal: "SIGKILL",
      env: {
        PATH: `${folder}:${process.env.PATH}`,
        HOME: folder,
        ZDOTDIR: folder,
        XDG_CONFIG_HOME: folder,
        TERM: "dumb",
        PS1: "> ",
      },
    });
    const terminal = new ShellTerminal(child);
    const setUp = shell === "zsh" ? "autoload -U compinit; compinit -u; " : "";
    // What is awaited is not what is typed.
    await terminal.typed(
      `${setUp}source <(tessera completion ${shell}); echo load''ed\n`,
      "loaded\r",
    );
    return terminal;
  }

  /** Types these keys, and waits until the terminal shows this text; then deletes the line. */
  async typed(keys: string, expected: string): Promise<void> {
    this.#output = "";
    this.#child.stdin?.write(keys);
    while (!stripVTControlCharacters(this.#output).includes(expected)) {
      if (this.#child.exitCode !== null || this.#child.signalCode !== null) {
        throw new Error(`${JSON.stringify(keys)} gave ${JSON.stringify(this.#output)}`);
      }
      await this.#grown.promise;
    }
    this.#child.stdin?.write(CONTROL_U);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#child.kill("SIGKILL");
    await this.#closed;
  }
}
