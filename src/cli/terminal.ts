/**
 * The terminal of a command. Answers go to `stdout`, so that programs can read
 * them; messages and prompts for people go to `stderr`.
 */
import { CliError, ExitCode } from "./failure.ts";
import { plain } from "./plain.ts";
import type { Table } from "./table.ts";

/** The streams of a command. */
export interface Streams {
  readonly stdin: NodeJS.ReadableStream;
  readonly stdout: NodeJS.WritableStream;
  readonly stderr: NodeJS.WritableStream;
  /** Whether a person can answer prompts. */
  readonly interactive: boolean;
  /** Makes the command handle Ctrl-C itself until disposed. */
  interruption(): Interruption;
}

interface Interruption extends Disposable {
  readonly signal: AbortSignal;
}

/** Secret read from the terminal or from standard input: longer than any secret. */
const MAX_TYPED_SECRET_CHARACTERS = 4096;

/** The streams of this process. */
export function processStreams(): Streams {
  const { stdin, stdout, stderr } = process;
  stdout.on("error", endWithReader);
  stderr.on("error", endWithReader);
  return {
    stdin,
    stdout,
    stderr,
    interactive: stdin.isTTY === true && stderr.isTTY === true,
    interruption: () => {
      const controller = new AbortController();
      const abort = (): void => controller.abort();
      process.once("SIGINT", abort);
      return {
        signal: controller.signal,
        [Symbol.dispose]: () => void process.off("SIGINT", abort),
      };
    },
  };
}

/** A reader such as `head` may stop early: then there is nothing left to do, and no error. */
function endWithReader(err: NodeJS.ErrnoException): void {
  if (err.code !== "EPIPE") {
    throw err;
  }
  process.exit(ExitCode.done);
}

/** Messages and prompts of a command. */
export class Terminal {
  readonly streams: Streams;

  constructor(streams: Streams) {
    this.streams = streams;
  }

  get interactive(): boolean {
    return this.streams.interactive;
  }

  /** Writes lines of the answer: a table as wide as the terminal, or says that it is empty. */
  answer(answer: string | Table): void {
    if (typeof answer === "string") {
      this.streams.stdout.write(`${answer}\n`);
    } else if (answer.isEmpty) {
      this.say(answer.empty);
    } else {
      this.streams.stdout.write(`${answer.text(this.#cells)}\n`);
    }
  }

  /** The width of the terminal; undefined where the output goes to no terminal. */
  get #cells(): number | undefined {
    const { stdout } = this.streams;
    return "columns" in stdout && typeof stdout.columns === "number" && stdout.columns > 0
      ? stdout.columns
      : undefined;
  }

  /** Writes a message to the user. */
  say(text: string): void {
    this.streams.stderr.write(`${text}\n`);
  }

  async ask(message: string, otherwise?: string): Promise<string> {
    const { input } = await prompts();
    const text = await input(
      { message, required: true, ...(otherwise !== undefined && { default: otherwise }) },
      this.#context(),
    );
    return text.trim();
  }

  /** Prompts without echo. */
  async askSecret(message: string): Promise<string> {
    const { password } = await prompts();
    return await password({ message, mask: "*", toggleMask: false }, this.#context());
  }

  async confirm(message: string, otherwise: boolean): Promise<boolean> {
    const { confirm } = await prompts();
    return await confirm({ message, default: otherwise }, this.#context());
  }

  async choose<T>(
    message: string,
    choices: readonly { readonly name: string; readonly value: T }[],
  ): Promise<T> {
    const { select } = await prompts();
    return await select({ message, choices }, this.#context());
  }

  /** Requires confirmation, by prompt or `--yes`, for an action that cannot be undone. */
  async insist(message: string, yes: boolean | undefined): Promise<void> {
    if (yes === true) {
      return;
    }
    if (!this.interactive) {
      throw new CliError("this asks for a confirmation, and there is no terminal: add --yes", {
        exitCode: ExitCode.usage,
      });
    }
    if (!(await this.confirm(plain(message), false))) {
      throw new CliError("nothing was changed");
    }
  }

  /** Reads a secret: the first line of standard input, or a prompt without echo on a terminal. */
  async readSecret(message: string): Promise<string> {
    if (this.interactive) {
      return await this.askSecret(message);
    }
    let text = "";
    for await (const chunk of this.streams.stdin) {
      text += chunk.toString();
      if (text.length > MAX_TYPED_SECRET_CHARACTERS || text.includes("\n")) {
        break;
      }
    }
    return (text.split("\n")[0] ?? "").replace(/\r$/, "");
  }

  #context() {
    return { input: this.streams.stdin, output: this.streams.stderr };
  }
}

/** Loaded on demand: most runs have no prompt. */
function prompts() {
  return import("@inquirer/prompts");
}
