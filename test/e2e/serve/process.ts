import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { fixture, Served } from "./served.ts";

/** A server as a process of its own, which can be killed and whose memory can be measured. */
export class ServerProcess extends Served {
  readonly #child: ChildProcess;

  static async start(name: string, database?: string): Promise<ServerProcess> {
    const args = [fixture(`${name}.ts`), ...(database === undefined ? [] : [database])];
    const host = fileURLToPath(new URL("./host.ts", import.meta.url));
    const child = fork(host, args, { execArgv: ["--disable-warning=ExperimentalWarning"] });
    const [{ port }] = (await once(child, "message")) as [{ port: number }];
    return new ServerProcess(port, child);
  }

  private constructor(port: number, child: ChildProcess) {
    super(port, async () => {
      if (child.connected) {
        const exited = once(child, "exit");
        child.send("stop");
        await exited;
      }
    });
    this.#child = child;
  }

  /** Ends it at once, with no time for anything. */
  async kill(): Promise<void> {
    const exited = once(this.#child, "exit");
    this.#child.kill("SIGKILL");
    await exited;
  }

  /** The longest turn of its event loop since the last question, in processor time. */
  async longestTurnMs(): Promise<number> {
    const answered = once(this.#child, "message");
    this.#child.send("turns");
    const [{ longestTurnMs }] = (await answered) as [{ longestTurnMs: number }];
    return longestTurnMs;
  }

  /** The most memory that it ever had, in bytes. */
  async peakBytes(): Promise<number> {
    const answered = once(this.#child, "message");
    this.#child.send("memory");
    const [{ peakBytes }] = (await answered) as [{ peakBytes: number }];
    return peakBytes;
  }
}
