/** Someone at a command line of their own: streams, environment and a folder for their login. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough, Writable } from "node:stream";
import { stripVTControlCharacters } from "node:util";
import { main } from "../../../src/main.ts";

export interface Outcome {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface RunOptions {
  /** What comes in on standard input, which then ends. */
  readonly input?: string;
  /** Sits at a terminal: the answers to questions, each with the question's beginning. */
  readonly answers?: readonly (readonly [question: string, keys: string])[];
  readonly env?: Readonly<Record<string, string>>;
  /** Called with what standard output has so far, whenever it grows. */
  readonly onStdout?: (text: string) => void;
}

export class Person implements Disposable {
  readonly home = mkdtempSync(join(tmpdir(), "tessera-person-"));
  /** The time, by the clock of the commands. */
  now: () => number = Date.now;
  /** How long the commands have asked to wait. */
  readonly waitsMs: number[] = [];
  /** Called with what standard error has so far, whenever it grows. */
  onStderr: (text: string) => void = () => {};
  /** Called with every wait, which ends after it. */
  beforeWaitEnds: () => void | Promise<void> = () => {};
  #interrupt = new AbortController();

  get contextFile(): string {
    return join(this.home, "tessera", "context.json");
  }

  /** Runs the program in this process. */
  async run(args: readonly string[], options: RunOptions = {}): Promise<Outcome> {
    const { input, answers, env = {}, onStdout = () => {} } = options;
    const stdin = new PassThrough();
    const stdout = new Written(onStdout);
    const left = [...(answers ?? [])];
    let seen = 0;
    const stderr = new Written((text) => {
      this.onStderr(text);
      const [next] = left;
      const at = next === undefined ? -1 : text.indexOf(next[0], seen);
      if (next !== undefined && at >= 0) {
        seen = at + next[0].length;
        left.shift();
        // What is typed before a question is complete, is lost.
        setImmediate(() => stdin.write(next[1]));
      }
    });
    if (input !== undefined) {
      stdin.end(input);
    }
    this.#interrupt = new AbortController();
    const code = await main(args, {
      env: { XDG_CONFIG_HOME: this.home, ...env },
      streams: {
        stdin,
        stdout,
        stderr,
        interactive: answers !== undefined,
        interruption: () => ({ signal: this.#interrupt.signal, [Symbol.dispose]: () => {} }),
      },
      clock: {
        now: () => this.now(),
        wait: async (ms, signal) => {
          this.waitsMs.push(ms);
          await this.beforeWaitEnds();
          signal.throwIfAborted();
        },
      },
    });
    return { code, stdout: stdout.text, stderr: stderr.text };
  }

  /** Presses Ctrl-C where the program listens for it. */
  interrupt(): void {
    this.#interrupt.abort();
  }

  [Symbol.dispose](): void {
    rmSync(this.home, { recursive: true, force: true });
  }
}

/** Keeps what is written to it, without colours. Like a terminal, it cannot be ended. */
class Written extends Writable {
  text = "";

  constructor(onText: (text: string) => void) {
    super({
      decodeStrings: false,
      write: (chunk: string | Buffer, _encoding, done) => {
        this.text += stripVTControlCharacters(chunk.toString());
        onText(this.text);
        done();
      },
    });
  }

  override end(): this {
    return this;
  }
}
