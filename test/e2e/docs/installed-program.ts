/** The command line of an installed package, serving as a process of its own. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";

/** Longer than any test serves. */
const LIMIT_MS = 120_000;

export class InstalledProgram implements AsyncDisposable {
  readonly url: string;
  readonly #child: ChildProcess;
  readonly #ended: Promise<unknown>;

  private constructor(child: ChildProcess, ended: Promise<unknown>, url: string) {
    this.#child = child;
    this.#ended = ended;
    this.url = url;
  }

  /** Serves on a free port what stands in `cwd`; the package is installed in `home`. */
  static async serve(
    cwd: string,
    args: readonly string[],
    {
      env = {},
      home = cwd,
    }: { readonly env?: Readonly<Record<string, string>>; readonly home?: string } = {},
  ): Promise<InstalledProgram> {
    const program = join(home, "node_modules/tessera-platform/bin/tessera.js");
    const child = spawn(process.execPath, [program, "serve", ...args, "--port", "0"], {
      cwd,
      stdio: ["ignore", "pipe", "pipe"],
      // Also where a test was broken off and disposes of nothing.
      timeout: LIMIT_MS,
      killSignal: "SIGKILL",
      env: { ...process.env, TESSERA_DRAIN_DELAY: "0s", ...env },
    });
    const ended = once(child, "close");
    let said = "";
    const url = await new Promise<string>((resolve, reject) => {
      for (const stream of [child.stdout, child.stderr]) {
        stream.setEncoding("utf8").on("data", (text: string) => {
          said += text;
          const found = / on http:\/\/localhost:(\d+)\n[\s\S]*Ctrl-C stops/.exec(said)?.[1];
          if (found !== undefined) {
            resolve(`http://127.0.0.1:${found}`);
          }
        });
      }
      ended.then(() => reject(new Error(`it ended before it served:\n${said}`)));
    });
    return new InstalledProgram(child, ended, url);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#child.kill("SIGTERM");
    await this.#ended;
  }
}
