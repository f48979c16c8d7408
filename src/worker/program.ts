/**
 * A program that is a server of its own: it is started as a child of the worker, in the sandbox and
 * the network namespace of this, and each connection that the node wants is relayed to its port,
 * byte by byte. It lives as long as the worker: when one ends, so does the other, with all that the
 * program has started.
 *
 * States: started, until it answers at its port; serving; stopping, from SIGTERM to its end.
 */
import { type ChildProcess, type SpawnOptions, spawn } from "node:child_process";
import { once } from "node:events";
import { get } from "node:http";
import { createConnection, createServer, type Socket } from "node:net";
import { dirname } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import type { Program } from "../protocol/command.ts";
import { modelPath } from "../sdk/models.ts";
import { messageOf } from "./failure.ts";
import { deniedMessage } from "./permission-errors.ts";

/** Where it may listen: the loopback of its sandbox, or of the machine. */
const HOSTS = ["127.0.0.1", "::1"] as const;

/** Pause between two looks whether a program answers, while it starts. */
const LOOK_INTERVAL_MS = 100;
/** How long the health of a program may take to answer. */
const HEALTH_TIMEOUT_MS = 30_000;
/** How long the port of a program may take to accept. */
const CONNECT_TIMEOUT_MS = 5_000;
/** How long a program may take to end after SIGTERM, before SIGKILL. */
const STOP_TIMEOUT_MS = 10_000;

/** Stands in a command for the folder of a model. */
const MODEL = /\{model:([^{}]*)\}/g;

/** How the first answer on a connection begins if that is a WebSocket, which has one of its own. */
const UPGRADED = Buffer.from("HTTP/1.1 101 ");

/**
 * A shell that kills the group of the program when the worker has ended, however that came: its
 * input ends then. A sandbox of the kernel needs none, and mostly has no shell.
 */
const WATCHDOG = 'read _; kill -KILL -"$1"';

interface ProgramOptions {
  /** Where it is mounted, for messages. */
  readonly path: string;
  /** Its working folder. */
  readonly folder: string;
  /** The variables of the worker. */
  readonly env: NodeJS.ProcessEnv;
  /** It has ended by itself, which ends the worker for this reason. */
  onEnded(reason: string): void;
}

export class RunningProgram {
  readonly #program: Program;
  readonly #options: ProgramOptions;
  readonly #name: string;
  #child: ChildProcess | undefined;
  #port = 0;
  #host: (typeof HOSTS)[number] = HOSTS[0];
  #isStopping = false;
  /** Connections whose WebSocket is open: the node's side, and the program's. */
  readonly #upgraded = new Map<Socket, Socket>();

  constructor(program: Program, options: ProgramOptions) {
    this.#program = program;
    this.#options = options;
    this.#name = `the program ${JSON.stringify(program.command[0])} at ${options.path}`;
  }

  /**
   * Starts it, and resolves when it is ready; the node limits how long that may take. `say` is
   * called with why it is not yet. Rejects for a port that is taken.
   */
  async start(say: (said: string) => void): Promise<void> {
    const { port } = this.#program;
    if (port !== undefined && (await this.#listensAt(port)) !== undefined) {
      throw new Error(
        `${this.#name} cannot have port ${port}: something listens there on this machine; leave port out, and write {port} in the command, for a free one`,
      );
    }
    this.#port = port ?? (await freePort());
    this.#spawn();
    for (let last = ""; ; await wait(LOOK_INTERVAL_MS)) {
      const said = (await this.#silence()) || (await this.fault());
      if (said === "") {
        return;
      }
      if (said !== last) {
        say(said);
        last = said;
      }
    }
  }

  /** Whether it says by its health that it takes requests. */
  get hasHealth(): boolean {
    return this.#program.health !== undefined;
  }

  /** Why its health takes no requests; empty: it does, or has none. */
  async fault(): Promise<string> {
    const { health } = this.#program;
    const fault = health === undefined ? undefined : await this.#sickness(health);
    return fault === undefined ? "" : `${this.#name} ${fault}`;
  }

  /** Joins a connection of the node with one of the program. */
  relay(node: Socket): void {
    const program = createConnection({ host: this.#host, port: this.#port, noDelay: true });
    const upgraded = this.#upgraded;
    // An error of one side is the end of both.
    for (const [one, other] of [
      [node, program],
      [program, node],
    ] as const) {
      one.on("error", () => other.destroy());
      one.pipe(other);
    }
    node.once("close", () => {
      this.#upgraded.delete(node);
      program.destroy();
    });
    let beginning = Buffer.alloc(0);
    program.on("data", function look(bytes: Buffer) {
      beginning = Buffer.concat([beginning, bytes.subarray(0, UPGRADED.length - beginning.length)]);
      if (beginning.length === UPGRADED.length) {
        program.off("data", look);
        if (beginning.equals(UPGRADED)) {
          upgraded.set(node, program);
        }
      }
    });
  }

  /** Ends its WebSockets with these last bytes. Other connections end with the node's last request. */
  retire(lastBytes: Buffer): void {
    for (const [node, program] of this.#upgraded) {
      if (!node.writableEnded) {
        program.unpipe(node);
        node.end(lastBytes);
      }
    }
  }

  /** Resolves when it has ended. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    const child = this.#child;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) {
      return;
    }
    child.kill("SIGTERM");
    const kill = setTimeout(() => child.kill("SIGKILL"), STOP_TIMEOUT_MS);
    await once(child, "exit");
    clearTimeout(kill);
  }

  #spawn(): void {
    const { folder, env } = this.#options;
    const [name = "", ...args] = this.#program.command.map((each) =>
      each
        .replaceAll("{port}", String(this.#port))
        .replaceAll(MODEL, (_, model: string) => modelPath(model)),
    );
    const child = spawnFree(name, args, {
      cwd: folder,
      env: environment(env, this.#port),
      // Its output is the worker's. In a group of its own, no signal for the node reaches it.
      stdio: ["ignore", "inherit", "inherit"],
      detached: true,
    });
    this.#child = child;
    child.on("error", ({ code, message }: NodeJS.ErrnoException) =>
      this.#ended(fault(code, message)),
    );
    child.once("exit", (code, signal) =>
      this.#ended(signal === null ? `ended with code ${code}` : `was killed by ${signal}`),
    );
    if (child.pid !== undefined) {
      const watchdog = spawn("sh", ["-c", WATCHDOG, "sh", String(child.pid)], {
        stdio: ["pipe", "ignore", "ignore"],
        detached: true,
      });
      watchdog.on("error", () => {});
      watchdog.stdin.on("error", () => {});
    }
  }

  #ended(how: string): void {
    if (!this.#isStopping) {
      this.#isStopping = true;
      const hint = how.endsWith("code 0") ? ": it has to stay in the foreground" : "";
      this.#options.onEnded(`${this.#name} ${how}${hint}`);
    }
  }

  /** Why it is not reached at its port; empty: it is. */
  async #silence(): Promise<string> {
    const host = await this.#listensAt(this.#port);
    if (host !== undefined) {
      this.#host = host;
      return "";
    }
    const where =
      this.#program.port === undefined
        ? `port ${this.#port}, which {port} in its command and the variable PORT name`
        : `its port ${this.#port}`;
    return `${this.#name} does not listen on ${where}`;
  }

  /** The address at which something accepts at a port; undefined: nothing does. */
  async #listensAt(port: number): Promise<(typeof HOSTS)[number] | undefined> {
    for (const host of HOSTS) {
      if (await accepts(host, port)) {
        return host;
      }
    }
    return undefined;
  }

  /** What is wrong with how it answers at its health path; undefined: nothing. */
  #sickness(path: string): Promise<string | undefined> {
    return new Promise((resolve) => {
      const asked = get(
        { host: this.#host, port: this.#port, path, agent: false, timeout: HEALTH_TIMEOUT_MS },
        (res) => {
          const { statusCode = 0 } = res;
          res.destroy();
          const isWell = statusCode >= 200 && statusCode < 300;
          resolve(isWell ? undefined : `answers ${path} with ${statusCode}`);
        },
      );
      asked.once("upgrade", (_res, socket) => {
        socket.destroy();
        resolve(`answers ${path} with 101, which opens something else than an answer`);
      });
      asked.once("timeout", () => {
        resolve(`does not answer ${path} within ${HEALTH_TIMEOUT_MS / 1_000} s`);
        asked.destroy();
      });
      asked.on("error", ({ code = "", message }: NodeJS.ErrnoException) =>
        resolve(
          code.startsWith("HPE_")
            ? `answers ${path} with what is not HTTP: ${message}`
            : `does not answer ${path}: ${message}`,
        ),
      );
    });
  }
}

/** Starts a program without the permissions of this process, which Node makes those of children. */
function spawnFree(name: string, args: readonly string[], options: SpawnOptions): ChildProcess {
  const flags = process.execArgv.splice(0);
  try {
    return spawn(name, args, options);
  } catch (err) {
    throw new Error(deniedMessage(err) ?? messageOf(err), { cause: err });
  } finally {
    process.execArgv.push(...flags);
  }
}

/** Why it could not be started. */
function fault(code: string | undefined, message: string): string {
  switch (code) {
    case "ENOENT":
      return "is not there, or the program in its first line is not: it is looked for in the folder of the service, where its path has a slash, and otherwise in PATH; requirements, packages or an image bring programs";
    case "EACCES":
      return "may not be executed: is it a program of this system, and marked as one (chmod +x)?";
    default:
      return `cannot be started: ${message}`;
  }
}

/** The variables of the worker, and its own port. */
function environment(env: NodeJS.ProcessEnv, port: number): NodeJS.ProcessEnv {
  const { PATH = "", HOME, TMPDIR } = env;
  const folders = [...PATH.split(":").filter(Boolean), dirname(process.execPath)];
  return {
    ...env,
    HOME: HOME ?? TMPDIR,
    PATH: folders.join(":"),
    PORT: String(port),
  };
}

function accepts(host: string, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = createConnection({ host, port, timeout: CONNECT_TIMEOUT_MS });
    const end = (isOpen: boolean): void => {
      resolve(isOpen);
      socket.destroy();
    };
    socket.once("connect", () => end(true));
    socket.once("timeout", () => end(false));
    socket.on("error", () => end(false));
  });
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, HOSTS[0]);
  await once(server, "listening");
  const address = server.address();
  server.close();
  await once(server, "close");
  return typeof address === "object" && address !== null ? address.port : 0;
}
